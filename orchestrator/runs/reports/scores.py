"""Computes the score of a run from its stored verdicts: both denominators, an interval, and whether it is comparable. Pure.

Samples of one problem form a cluster. Groups that need more than the problems' ids (difficulty, platform, date) are in
`score_detail`; everything else is stored with the run, including its sample: the problems of one pack, asked with one
version of the prompt. Two scores may be compared only if their samples are the same. A run in which no item counts has no
score.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any, TypedDict

from orchestrator.datasets.packs.pack import Entry
from orchestrator.runs.reasons import Reason
from orchestrator.stats.summary import COMPARABLE_UP_TO, ItemScore, Metric, around_cut_off, summarise
from runner.contract.events import NOT_THE_MODELS_FAULT, Outcome
from runner.contract.run_spec import BenchmarkSpec, RunKind

ScoredItem = tuple[str, str, int, str, str | None, float | None]
"""(benchmark, problem, sample, outcome, parity outcome, score)"""
Facts = Callable[[str], Mapping[str, Entry]]
"""Returns what is known of the problems of a benchmark; nothing if its pack has changed."""

_BARE = Entry("")


class Flag(StrEnum):
    """Caveats that must be shown with the score of a completed run."""

    EXCLUDED = "excluded_over_limit"  #: more than 2 % of the items ended with an error of provider or infrastructure
    CUT_SHORT = "cut_short"  #: the run ended before its last item


def score_of(verdicts: Sequence[ScoredItem], *, cut_short: bool = False) -> dict[str, Any] | None:
    """Pass rate with a 95 % interval, pass@k, and the official checker's pass rate; None while there is nothing to score.

    If an item has a value between 0 and 1, it is the mean value instead, and says so: `metric` is "mean".

    Over several benchmarks it is pooled: `pooled_over` is their number, and `benchmarks` has the score of each.
    """
    if not verdicts:
        return None
    by_benchmark: dict[str, list[ScoredItem]] = {}
    for verdict in verdicts:
        by_benchmark.setdefault(verdict[0], []).append(verdict)
    pooled = _score(verdicts, cut_short) | {"pooled_over": len(by_benchmark)}
    if len(by_benchmark) > 1:
        pooled["benchmarks"] = {name: _score(part, cut_short) for name, part in by_benchmark.items()}
    return pooled


def scores_by_benchmark(score: Mapping[str, Any] | None, benchmarks: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The score of each benchmark, from a stored score. Empty if an older version stored only the pooled one."""
    if not score:
        return {}
    if len(benchmarks) == 1:
        return {benchmarks[0]: dict(score)}
    parts: dict[str, dict[str, Any]] = score.get("benchmarks") or {}
    return {name: parts[name] for name in benchmarks if name in parts}


def flags_of(score: Mapping[str, Any] | None, items_done: int, total: int) -> list[Flag]:
    """The caveats of a completed run with `items_done` of `total` items finished."""
    flags = []
    if score and score.get("n_all", 0) - score.get("n", 0) > COMPARABLE_UP_TO * score.get("n_all", 0):
        flags.append(Flag.EXCLUDED)
    if items_done < total:
        flags.append(Flag.CUT_SHORT)
    return flags


def _score(verdicts: Sequence[ScoredItem], cut_short: bool) -> dict[str, Any]:
    summary = summarise([_item(verdict, _BARE) for verdict in verdicts])
    counted = summary.n > 0
    return {
        **({"metric": Metric.MEAN.value} if summary.metric is Metric.MEAN else {}),
        "estimate": summary.estimate if counted else None,
        "low": summary.low if counted else None,
        "high": summary.high if counted else None,
        "n": summary.n,
        "passed": summary.passed,
        "n_all": summary.n_all,
        "excluded": summary.n_all - summary.n,
        "estimate_all": summary.estimate_all,
        "comparable": summary.comparable and not cut_short,
        "problems": summary.problems,
        "pass_at_k": {str(k): round(rate, 12) for k, rate in summary.pass_at_k.items()},
        "parity": _plain(asdict(summary.parity)) if summary.parity else None,
        "flips": summary.flips,
    }


def run_score(kind: str, verdicts: Sequence[ScoredItem], *, cut_short: bool = False) -> dict[str, Any] | None:
    """The score that is stored with a run. Commands are measured and have none."""
    return None if kind == RunKind.COMMAND else score_of(verdicts, cut_short=cut_short)


def score_detail(verdicts: Sequence[ScoredItem], facts: Facts, cut_off: str | None = None) -> dict[str, Any]:
    """The score of each benchmark with its groups, and before and after the model's training cut-off."""
    benchmarks = {}
    for name in dict.fromkeys(verdict[0] for verdict in verdicts):
        problem_facts = facts(name)
        part = [verdict for verdict in verdicts if verdict[0] == name]
        items = [_item(verdict, problem_facts.get(verdict[1], _BARE)) for verdict in part]
        summary = summarise(items)
        around = around_cut_off(items, cut_off) if cut_off else None
        groups = {key: _plain(value) for key, value in asdict(summary).items() if key.startswith("by_")}
        benchmarks[name] = {
            **(score_of(part) or {}),
            "outcomes": summary.outcomes,
            **groups,
            "flipped": [
                {"problem_id": verdict[1], "sample_index": verdict[2], "outcome": verdict[3], "parity_outcome": verdict[4]}
                for verdict in part
                if _flipped(verdict)
            ],
            "around_cut_off": {**_plain(asdict(around)), "cut_off": cut_off} if around else None,
        }
    return benchmarks


def _item(verdict: ScoredItem, entry: Entry) -> ItemScore:
    benchmark, problem_id, sample, outcome, parity, score = verdict
    return ItemScore(
        problem_id=f"{benchmark}\0{problem_id}",
        sample_index=sample,
        outcome=Outcome(outcome),
        difficulty=entry.difficulty,
        platform=entry.platform,
        category=entry.category,
        date=entry.date,
        parity_outcome=Outcome(parity) if parity else None,
        score=score,
    )


def _plain(value: Any) -> Any:
    """Scores in JSON name their metric only if it is not the usual one."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items() if part is not Metric.SHARE}
    return value.value if isinstance(value, Metric) else value


def _flipped(verdict: ScoredItem) -> bool:
    if verdict[4] is None or Outcome(verdict[3]) in NOT_THE_MODELS_FAULT:
        return False
    return (verdict[3] == Outcome.PASSED) != (verdict[4] == Outcome.PASSED)


OutcomeDetail = tuple[str, str, int]
"""(outcome, detail, number of items)"""


def counts(outcomes: Mapping[str, int]) -> bool:
    """Whether any item of a run counts, given the number of items by outcome."""
    return any(number for outcome, number in outcomes.items() if Outcome(outcome) not in NOT_THE_MODELS_FAULT)


def nothing_measured(
    details: Sequence[OutcomeDetail], early: Reason | None = None, message: str | None = None
) -> tuple[Reason, str]:
    """Reason and message for a run in which no item counts. `early` and `message` say why it ended before its last item."""
    by_outcome: dict[str, int] = {}
    for outcome, _, number in details:
        by_outcome[outcome] = by_outcome.get(outcome, 0) + number
    worst = max(by_outcome, key=lambda outcome: by_outcome[outcome], default=None)
    detail = max((row for row in details if row[0] == worst), key=lambda row: row[2], default=("", "", 0))[1]
    reason = early or (Reason.PROVIDER_ERROR if worst == Outcome.PROVIDER_ERROR else Reason.NOTHING_MEASURED)
    why = message if early and message else detail
    ended = ", ".join(f"{number} {outcome}" for outcome, number in sorted(by_outcome.items()))
    facts = f"nothing was measured ({ended or 'no item was finished'})"
    return reason, f"{facts}: {why}" if why else facts


ID_CHARS = 16


class Sample(TypedDict):
    """The stored form, for each benchmark."""

    id: str
    pack_digest: str
    problems: int
    prompt_version: str


def sample_id(pack_digest: str, problem_ids: Iterable[str], prompt_version: str) -> str:
    """The same for the same problems in any order, however many samples of each were asked for."""
    text = json.dumps([pack_digest, sorted(set(problem_ids)), prompt_version])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:ID_CHARS]


def samples_of(benchmarks: Sequence[BenchmarkSpec], prompt_versions: Mapping[str, str]) -> dict[str, Sample]:
    """The sample of each benchmark of a run."""
    samples: dict[str, Sample] = {}
    for part in benchmarks:
        version = prompt_versions.get(part.name, "")
        samples[part.name] = Sample(
            id=sample_id(part.pack_digest, part.problem_ids, version),
            pack_digest=part.pack_digest,
            problems=len(set(part.problem_ids)),
            prompt_version=version,
        )
    return samples


def asked_problems(benchmarks: Sequence[BenchmarkSpec], verdicts: Iterable[ScoredItem]) -> list[BenchmarkSpec]:
    """The benchmarks of a run without a plan, with the problems that it turned out to have."""
    problems: dict[str, dict[str, None]] = {}
    for verdict in verdicts:
        problems.setdefault(verdict[0], {})[verdict[1]] = None
    return [part.model_copy(update={"problem_ids": list(problems.get(part.name, ()))}) for part in benchmarks]


def stored_sample(score: Mapping[str, Any] | None, benchmark: str) -> Sample | None:
    """The sample that is stored with a score; None if an older version stored none."""
    sample: Sample | None = ((score or {}).get("samples") or {}).get(benchmark)
    return sample
