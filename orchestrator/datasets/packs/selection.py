"""Selects the problems of a run from a pack: pure, seeded, stratified and stable.

The rank of a problem in the draw is a hash of seed and id, so the same seed and pack give the same problems, and a problem
added to a later pack does not reshuffle the others. Each stratum (difficulty, or category if there is none) gets its share
of the sample by largest remainder.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from orchestrator.datasets.errors import TooFewProblems, UnknownProblem
from orchestrator.datasets.packs.pack import Entry

OneOrMore = str | Sequence[str] | None


@dataclass(frozen=True)
class Selection:
    """The criteria. `after` and `before` are both inclusive, as in LiveCodeBench; None means no condition."""

    sample_size: int | None = None
    subset_pct: float | None = None
    seed: int = 0
    after: date | None = None
    before: date | None = None
    difficulty: OneOrMore = None
    platform: OneOrMore = None
    category: OneOrMore = None
    ids: Sequence[str] | None = None
    exclude_flagged: bool = False


def choose(benchmark: str, entries: Sequence[Entry], selection: Selection) -> list[str]:
    """The ids of the selected problems. A sample is in draw order (so that a truncated run is still a fair sample), given
    ids are in their own order, and a full selection is in pack order.
    """
    pool = [entry for entry in _named(benchmark, entries, selection.ids) if _fits(entry, selection)]
    if not pool:
        raise TooFewProblems(benchmark, selection.sample_size or 1, 0)
    size = _size(len(pool), selection)
    if size is None:
        return [entry.id for entry in pool]
    if size > len(pool):
        raise TooFewProblems(benchmark, size, len(pool))
    return _draw(pool, size, selection.seed)


def _named(benchmark: str, entries: Sequence[Entry], ids: Sequence[str] | None) -> Iterable[Entry]:
    if ids is None:
        return entries
    known = {entry.id: entry for entry in entries}
    missing = [problem_id for problem_id in ids if problem_id not in known]
    if missing:
        raise UnknownProblem(benchmark, missing)
    return [known[problem_id] for problem_id in dict.fromkeys(ids)]


def _fits(entry: Entry, selection: Selection) -> bool:
    day = entry.day
    if selection.after is not None and (day is None or day < selection.after):
        return False
    if selection.before is not None and (day is None or day > selection.before):
        return False
    if selection.exclude_flagged and flaw(entry) is not None:
        return False
    return all(
        wanted is None or value in ((wanted,) if isinstance(wanted, str) else wanted)
        for wanted, value in (
            (selection.difficulty, entry.difficulty),
            (selection.platform, entry.platform),
            (selection.category, entry.category),
        )
    )


def _size(available: int, selection: Selection) -> int | None:
    if selection.sample_size is not None:
        return selection.sample_size
    if selection.subset_pct is not None:
        return min(available, max(1, round(available * selection.subset_pct / 100)))
    return None


def _draw(pool: Sequence[Entry], size: int, seed: int) -> list[str]:
    ranks = {entry.id: hashlib.sha256(f"{seed}\0{entry.id}".encode()).digest() for entry in pool}
    strata: dict[str, list[str]] = defaultdict(list)
    for entry in pool:
        strata[entry.stratum].append(entry.id)
    shares = _shares({name: len(members) for name, members in strata.items()}, size)
    chosen = [
        problem_id
        for name, members in strata.items()
        for problem_id in sorted(members, key=ranks.__getitem__)[: shares[name]]
    ]
    return sorted(chosen, key=ranks.__getitem__)


def _shares(counts: dict[str, int], size: int) -> dict[str, int]:
    """Largest remainder; ties go to the larger stratum, then by name. No share exceeds its count for size <= total."""
    total = sum(counts.values())
    shares = {name: size * count // total for name, count in counts.items()}
    by_remainder = sorted(counts, key=lambda name: (-(size * counts[name] % total), -counts[name], name))
    for name in by_remainder[: size - sum(shares.values())]:
        shares[name] += 1
    return shares


_SEVERAL_ANSWERS = "several answers are right, the tests know one"
_INTERACTIVE = "interactive: cannot be judged by fixed tests"
_WRONG_TESTS = "some of its tests are wrong"

FLAGGED: dict[str, str] = {
    "abc311_c": _SEVERAL_ANSWERS,
    "abc326_d": _SEVERAL_ANSWERS,
    "abc327_b": _SEVERAL_ANSWERS,
    "abc333_e": _SEVERAL_ANSWERS,
    "abc343_a": _SEVERAL_ANSWERS,
    "abc343_e": _SEVERAL_ANSWERS,
    "abc362_c": _SEVERAL_ANSWERS,
    "arc185_c": _SEVERAL_ANSWERS,
    "find-words-containing-character": _SEVERAL_ANSWERS,
    "find-the-peaks": _SEVERAL_ANSWERS,
    "generate-binary-strings-without-adjacent-zeros": _SEVERAL_ANSWERS,
    "abc337_e": _INTERACTIVE,
    "abc355_e": _INTERACTIVE,
    "abc350_c": _WRONG_TESTS,
    "arc189_a": _WRONG_TESTS,
    "apply-operations-to-make-string-empty": _WRONG_TESTS,
    "most-frequent-ids": _WRONG_TESTS,
}


def flaw(entry: Entry) -> str | None:
    """Why a problem is listed as faulty, or None."""
    if entry.platform == "leetcode":
        return FLAGGED.get(entry.title)
    return FLAGGED.get(entry.id)
