"""Regrading of an archive: the answers, the verdicts then and now, and which of them changed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.archives.format.digest import ArchivedVerdict, grading_digest, is_verdict, score_text

Key = tuple[str, str, int]
"""(benchmark, problem, sample)"""


@dataclass(frozen=True)
class ChangedVerdict:
    benchmark: str
    problem_id: str
    sample_index: int
    before: str
    after: str
    parity_before: str
    parity_after: str
    score_before: str = ""
    score_after: str = ""


@dataclass
class Verdicts:
    """The verdicts of an archive, collected while it is read."""

    packs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    then: dict[Key, ArchivedVerdict] = field(default_factory=dict)

    def add(self, item: Mapping[str, Any]) -> bool:
        """Whether the result is a verdict and so part of the digest."""
        if not is_verdict(item["outcome"]):
            return False
        key = (str(item["benchmark"]), str(item["problem_id"]), int(item["sample_index"]))
        outcomes = str(item["outcome"]), str(item.get("parity_outcome") or "")
        self.then[key] = ArchivedVerdict(*key, str(item["answer_digest"]), *outcomes, "", "", score_text(item.get("score")))
        return True

    def with_packs(self, manifest: Mapping[str, Any]) -> Verdicts:
        """The same verdicts with the packs they were graded with."""
        packs = {part["name"]: (str(part["pack_digest"]), str(part["adapter"])) for part in manifest["benchmarks"]}
        then = {}
        for key, verdict in self.then.items():
            digest, adapter = packs.get(verdict.benchmark, ("", ""))
            then[key] = replace(verdict, pack_digest=digest, adapter=adapter)
        return Verdicts(packs, then)

    @property
    def digest(self) -> str:
        return grading_digest(self.then.values())

    def now(self, graded: Iterable[Mapping[str, Any]]) -> tuple[str, list[ChangedVerdict], int]:
        """The digest with the new verdicts, the verdicts that changed, and how many were not regraded and stay."""
        after = dict(self.then)
        moved = []
        keys = set()
        for item in graded:
            key = (str(item["benchmark"]), str(item["problem_id"]), int(item["sample_index"]))
            if key not in after:
                continue
            keys.add(key)
            before = after[key]
            parity, score = item.get("parity_outcome") or "", score_text(item.get("score"))
            after[key] = new = replace(before, outcome=item["outcome"], parity_outcome=parity, score=score)
            if new != before:
                parities = before.parity_outcome, new.parity_outcome
                moved.append(ChangedVerdict(*key, before.outcome, new.outcome, *parities, before.score, new.score))
        return grading_digest(after.values()), moved, len(after) - len(keys)
