"""A run as an Inspect log: the documents of an `.eval` file, in version 2 of its published format. Pure.

An `.eval` file is a zip: `_journal/start.json`, one `samples/ID_epoch_N.json` per item, `summaries.json`, `header.json`. A
run of several benchmarks becomes one log whose sample ids begin with the name of the benchmark. An item that provider or
infrastructure broke is a sample with an error and without a score. The target is the expected answer where the result itself
shows it, that is where there is one test: tests that a result does not show are in no export.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.models.tables import LlmModel
from orchestrator.runs.intake.bounds import finish_of
from orchestrator.runs.lifecycle import TERMINAL, Status
from orchestrator.runs.reports.scores import scores_by_benchmark
from orchestrator.runs.tables import ContainerRun, ItemRow
from orchestrator.stats.summary import Metric
from runner.contract.events import NOT_THE_MODELS_FAULT, Outcome

VERSION = 2
START, SUMMARIES, HEADER = "_journal/start.json", "summaries.json", "header.json"
SCORER, PARITY = "benchyard", "official_checker"
SUMMARY_CHARS = 1_000
Json = dict[str, Any]

_STATUS = {Status.COMPLETED: "success", Status.CANCELLED: "cancelled"}
_STOPS = {"stop": "stop", "length": "max_tokens", "refusal": "content_filter", "tool_use": "tool_calls"}
_GENERATE = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "thinking_budget": "reasoning_tokens",
}
_UNSAFE = re.compile(r"[\x00-\x1f\x7f]|\.\.|^/|\\")


@dataclass(frozen=True)
class InspectLog:
    run: ContainerRun
    model: LlmModel | None
    model_name: str
    """What the log names as its model."""

    def start(self) -> Json:
        return {"version": VERSION, "eval": self._eval(), "plan": self._plan()}

    def header(self, counts: Mapping[str, int]) -> Json:
        """`counts` has the number of items by outcome."""
        status = _STATUS.get(Status(self.run.status), "error" if self.run.status in TERMINAL else "started")
        return {
            "version": VERSION,
            "status": status,
            **{name: part for name, part in self.start().items() if name != "version"},
            "results": self._results(counts),
            "stats": {
                "started_at": _time(self.run.started_at) or "",
                "completed_at": _time(self.run.completed_at) or "",
                "model_usage": {self.model_name: _usage(self.run.input_tokens, self.run.output_tokens)},
            },
            **({"error": _error(self._why())} if status == "error" else {}),
        }

    def member(self, row: ItemRow) -> str:
        """The name of an item's file."""
        return f"samples/{self._id(row.benchmark, row.problem_id)}_epoch_{row.sample_index + 1}.json"

    def sample(self, row: ItemRow) -> Json:
        data = row.data
        answer, finish = str(data.get("answer") or ""), finish_of(data)
        reply = {"role": "assistant", "content": answer, "source": "generate", "model": self.model_name}
        failed = row.outcome in NOT_THE_MODELS_FAULT
        messages: list[Json] = [{"role": "user", "content": str(data.get("prompt") or ""), "source": "input"}]
        calls = data.get("calls") or []
        latency_s = sum(float(call.get("latency_s") or 0) for call in calls)
        return {
            **self._common(row, latency_s),
            "input": str(data.get("prompt") or ""),
            "messages": messages if failed and not answer else [*messages, reply],
            "output": {
                "model": self.model_name,
                "choices": []
                if failed and not answer
                else [{"message": reply, "stop_reason": _STOPS.get(finish, "unknown")}],
                "completion": answer,
                "usage": self._usage(row),
                "time": latency_s or None,
                **({"error": row.detail or row.outcome} if failed else {}),
            },
            "metadata": {
                "benchmark": row.benchmark,
                "problem_id": row.problem_id,
                "outcome": row.outcome,
                "prompt_version": data.get("prompt_version"),
                "attempt": row.attempt,
                "tests": data.get("tests") or [],
            },
            "store": {},
            "events": [],
            "attachments": {},
            **({"error": _error(f"{row.outcome}: {row.detail}")} if failed else {}),
        }

    def summary(self, row: ItemRow) -> Json:
        prompt = str(row.data.get("prompt") or "")
        failed = row.outcome in NOT_THE_MODELS_FAULT
        return {
            **self._common(row, sum(float(call.get("latency_s") or 0) for call in row.data.get("calls") or []), brief=True),
            "input": prompt[:SUMMARY_CHARS],
            "metadata": {"benchmark": row.benchmark, "outcome": row.outcome},
            "completed": True,
            "message_count": 1 if failed and not row.data.get("answer") else 2,
            **({"error": f"{row.outcome}: {row.detail}"[:SUMMARY_CHARS]} if failed else {}),
        }

    def _common(self, row: ItemRow, latency_s: float, *, brief: bool = False) -> Json:
        return {
            "id": self._id(row.benchmark, row.problem_id),
            "epoch": row.sample_index + 1,
            "target": _target(row)[: SUMMARY_CHARS if brief else None],
            "scores": _scores(row, SUMMARY_CHARS if brief else None),
            "model_usage": {self.model_name: self._usage(row)},
            "completed_at": _time(row.created_at),
            "total_time": latency_s + row.wall_s,
            "working_time": latency_s + row.wall_s,
            "uuid": f"{row.run_id}-{row.position}",
        }

    def _id(self, benchmark: str, problem_id: str) -> str:
        name = problem_id if len(self.run.benchmarks) == 1 else f"{benchmark}/{problem_id}"
        return _UNSAFE.sub("_", name)

    def _usage(self, row: ItemRow) -> Json:
        calls = row.data.get("calls") or []
        cached, thought = (sum(int(call.get(name) or 0) for call in calls) for name in ("cached_tokens", "reasoning_tokens"))
        return _usage(row.input_tokens, row.output_tokens, cached, thought)

    def _eval(self) -> Json:
        run, parts = self.run, self.run.task.benchmarks
        return {
            "eval_id": run.id,
            "run_id": run.id,
            "created": _time(run.created_at),
            "task": "+".join(run.benchmarks),
            "task_id": run.id,
            "task_version": parts[0].pack_digest if len(parts) == 1 else 0,
            "task_attribs": {},
            "task_args": {"seed": run.seed},
            "dataset": {
                "name": "+".join(run.benchmarks),
                "location": " ".join(part.pack_digest for part in parts),
                "samples": sum(len(part.problem_ids) for part in parts),
                "sample_ids": [self._id(part.name, problem_id) for part in parts for problem_id in part.problem_ids] or None,
                "shuffled": False,
            },
            "model": self.model_name,
            "model_args": {},
            "model_generate_config": self._generate_config(),
            "config": {"epochs": run.samples_per_problem, "max_samples": run.concurrency, "fail_on_error": False},
            "packages": {},
            "metadata": {
                "benchyard_run": run.id,
                "kind": run.kind,
                "provider": self.model.provider if self.model else None,
                "provider_model": self.model.name if self.model else None,
                "trigger": run.trigger_type,
                "instance_type": run.instance_type,
                "cost_usd": None if run.unpriced_calls else run.cost_usd,
                "benchmarks": {part.name: part.pack_digest for part in parts},
            },
            "scorers": [{"name": SCORER, "metrics": [{"name": "accuracy"}]}],
        }

    def _plan(self) -> Json:
        return {"name": "plan", "steps": [{"solver": "generate", "params": {}}], "config": self._generate_config()}

    def _generate_config(self) -> Json:
        params = self.model.params if self.model else {}
        return {theirs: params[ours] for ours, theirs in _GENERATE.items() if params.get(ours) is not None}

    def _results(self, counts: Mapping[str, int]) -> Json | None:
        score = self.run.score
        if not score:
            return None
        broken = sum(counts.get(outcome, 0) for outcome in NOT_THE_MODELS_FAULT)
        scores = [_eval_score(SCORER, SCORER, score)]
        if score.get("parity"):
            scores.append(_eval_score(PARITY, PARITY, {**score["parity"], "n_all": score["n_all"]}))
        if len(self.run.benchmarks) > 1:
            parts = scores_by_benchmark(score, self.run.benchmarks)
            scores += [_eval_score(name, SCORER, part) for name, part in parts.items()]
        return {"total_samples": self.run.items_total, "completed_samples": sum(counts.values()) - broken, "scores": scores}

    def _why(self) -> str:
        return ": ".join(filter(None, (self.run.reason, self.run.error_message))) or self.run.status


def _eval_score(name: str, scorer: str, score: Mapping[str, Any]) -> Json:
    """The metrics of a score, with the ends of its 95 % interval as metrics of their own."""
    name_of_mean = "mean" if score.get("metric") == Metric.MEAN else "accuracy"
    metrics = {name_of_mean: score.get("estimate"), "ci_95_low": score.get("low"), "ci_95_high": score.get("high")}
    metrics |= {f"pass_at_{k}": rate for k, rate in (score.get("pass_at_k") or {}).items()}
    n = score.get("n") or 0
    return {
        "name": name,
        "scorer": scorer,
        "scored_samples": n,
        "unscored_samples": max(0, (score.get("n_all") or n) - n),
        "params": {},
        "metrics": {key: {"name": key, "value": value, "params": {}} for key, value in metrics.items() if value is not None},
    }


def _scores(row: ItemRow, limit: int | None) -> Json:
    if row.outcome in NOT_THE_MODELS_FAULT:
        return {}
    data = row.data
    verdict: Json = {
        "value": _mark(row.outcome) if row.score is None else row.score,
        "answer": None if data.get("code") is None else str(data["code"])[:limit],
        "explanation": row.detail[:limit] or None,
        "metadata": {
            "outcome": row.outcome,
            "tests_passed": row.tests_passed,
            "tests_total": row.tests_total,
            "extraction_rule": data.get("extraction_rule"),
            "cpu_s": row.cpu_s,
            "peak_bytes": row.peak_bytes,
            "fragile": row.fragile,
        },
    }
    if row.parity_outcome is None:
        return {SCORER: verdict}
    return {SCORER: verdict, PARITY: {"value": _mark(row.parity_outcome), "metadata": {"outcome": row.parity_outcome}}}


def _mark(outcome: str) -> str:
    return "C" if outcome == Outcome.PASSED else "I"


def _target(row: ItemRow) -> str:
    """The expected answer, if the result shows one; of several tests none is the answer."""
    tests = row.data.get("tests") or []
    return str(tests[0].get("expected") or "") if len(tests) == 1 and row.tests_total <= 1 else ""


def _usage(input_tokens: int, output_tokens: int, cached: int = 0, thought: int = 0) -> Json:
    """Inspect counts tokens from the provider's cache apart from the others."""
    return {
        "input_tokens": max(0, input_tokens - cached),
        "output_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
        **({"input_tokens_cache_read": cached} if cached else {}),
        **({"reasoning_tokens": thought} if thought else {}),
    }


def _error(message: str) -> Json:
    return {"message": message, "traceback": message, "traceback_ansi": message}


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
