"""Chooses the sample of a leaderboard: a model is ranked only if it was measured on exactly these problems. Pure.

Each run contributes its own sample. A run counts for a sample if it has all of its problems, with the same prompt version;
so a run on the whole benchmark also counts for a part of it, but not the other way round. The default is the largest sample
that models have in common (`common_sample`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrator.runs.reports.common_sample import by_common_size
from orchestrator.runs.reports.scores import sample_id


@dataclass(frozen=True)
class Candidate:
    """A completed run on the benchmark's pack; `why_not` is the reason if its score is not comparable."""

    model_id: int
    run_id: str
    problems: frozenset[str] = frozenset()
    prompt_version: str = ""
    why_not: str | None = None
    imported: bool = False
    """Its answers came from a file."""


@dataclass(frozen=True)
class BoardSample:
    id: str
    problems: frozenset[str]
    prompt_version: str
    runs: dict[int, str] = field(default_factory=dict)
    """The newest run with all the problems, per model."""


@dataclass(frozen=True)
class Unranked:
    """A model that is not ranked, represented by its newest run."""

    model_id: int
    run_id: str
    problems: int
    """Of the board's sample."""
    why: str


def board_samples(candidates: Sequence[Candidate], window: frozenset[str], pack_digest: str) -> list[BoardSample]:
    """The samples of the runs, restricted to a window of problems, best first. Candidates must be sorted newest first."""
    usable = [candidate for candidate in candidates if candidate.why_not is None]
    samples: dict[tuple[frozenset[str], str], BoardSample] = {}
    for candidate in usable:
        key = (candidate.problems & window, candidate.prompt_version)
        if key[0] and key not in samples:
            samples[key] = BoardSample(sample_id(pack_digest, key[0], key[1]), *key)
    for sample in samples.values():
        for candidate in usable:
            if candidate.prompt_version == sample.prompt_version and sample.problems <= candidate.problems:
                sample.runs.setdefault(candidate.model_id, candidate.run_id)
    return by_common_size(
        list(samples.values()), lambda sample: len(sample.problems), lambda sample: len(sample.runs), least_models=2
    )


def unranked(candidates: Sequence[Candidate], board: BoardSample | None) -> list[Unranked]:
    """Models with runs on the pack that are not ranked, with the reason."""
    ranked = board.runs if board is not None else {}
    rejected: dict[int, Unranked] = {}
    for candidate in candidates:
        if candidate.model_id in ranked or candidate.model_id in rejected:
            continue
        of_model = [other for other in candidates if other.model_id == candidate.model_id and other.why_not is None]
        if not of_model or board is None:
            rejected[candidate.model_id] = Unranked(
                candidate.model_id, candidate.run_id, 0, candidate.why_not or "it has no problem of the window"
            )
            continue
        best = max(of_model, key=lambda other: len(other.problems & board.problems))
        shared = len(best.problems & board.problems)
        if shared == len(board.problems):
            versions = [version or "unknown" for version in (best.prompt_version, board.prompt_version)]
            why = f"its prompts are of version {versions[0]}, those of the board of {versions[1]}"
        else:
            why = f"no comparable run of it has more than {shared} of the {len(board.problems)} problems"
        rejected[candidate.model_id] = Unranked(candidate.model_id, best.run_id, shared, why)
    return list(rejected.values())
