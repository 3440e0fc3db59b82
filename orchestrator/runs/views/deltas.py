"""In what else than their verdicts compared runs differ: difficulty, cost, tokens, latency. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.datasets.packs.pack import Entry
from orchestrator.runs.reports.queries import CallSums
from orchestrator.runs.reports.scores import stored_sample
from orchestrator.runs.tables import ContainerRun
from orchestrator.runs.views.compare import ComparedItem
from orchestrator.runs.views.run import EASE
from orchestrator.stats.summary import value_of


@dataclass(frozen=True)
class GroupDelta:
    """The mean value of each run on the shared items of one difficulty."""

    name: str
    items: int
    means: tuple[float, ...]

    @property
    def changes(self) -> tuple[float, ...]:
        """Against the first run, of each run after it."""
        return tuple(mean - self.means[0] for mean in self.means[1:])


@dataclass(frozen=True)
class UsageView:
    """What a run used per item; None if it is not known."""

    cost_usd: float | None
    input_tokens: float | None
    output_tokens: float | None
    latency_s: float | None


def by_difficulty(items: Sequence[ComparedItem], entries: Mapping[tuple[str, str], Entry]) -> list[GroupDelta]:
    """Easy to hard; empty if the problems have no difficulty."""
    groups: dict[str, list[ComparedItem]] = defaultdict(list)
    for item in items:
        entry = entries.get((item.results[0].benchmark, item.results[0].problem_id))
        if entry is not None and entry.difficulty:
            groups[entry.difficulty].append(item)
    ranks = {name: index for index, name in enumerate(EASE)}
    ordered = sorted(groups.items(), key=lambda group: (ranks.get(group[0], len(ranks)), group[0]))
    return [GroupDelta(name, len(members), _means(members)) for name, members in ordered]


def _means(items: Sequence[ComparedItem]) -> tuple[float, ...]:
    runs = range(len(items[0].results))
    values = [[value_of(item.results[run].outcome, item.results[run].score) for item in items] for run in runs]
    return tuple(sum(own) / len(items) for own in values)


def usage_view(run: ContainerRun, calls: CallSums | None) -> UsageView:
    done = run.items_done
    known = bool(done and calls and calls.count)
    return UsageView(
        cost_usd=run.cost_usd / done if known and not run.unpriced_calls else None,
        input_tokens=run.input_tokens / done if known else None,
        output_tokens=run.output_tokens / done if known else None,
        latency_s=calls.provider_s / calls.count if calls and calls.count else None,
    )


def why_unsuitable(run: ContainerRun, first: ContainerRun | None) -> str:
    """Why a run should not be compared with the first; empty if nothing speaks against it."""
    if not run.items_done:
        return "no results yet"
    if first is None or run.id == first.id:
        return ""
    shared = [name for name in first.benchmarks if name in run.benchmarks]
    if not shared:
        return "another benchmark"
    pairs = [(stored_sample(first.score, name), stored_sample(run.score, name)) for name in shared]
    if all(one and other and one["pack_digest"] != other["pack_digest"] for one, other in pairs):
        return "another version of the dataset"
    if all(one and other and one["prompt_version"] != other["prompt_version"] for one, other in pairs):
        return "other prompts"
    return ""
