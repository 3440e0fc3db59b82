"""Agreement of a judge with people on the same answers: the share, its interval, and Cohen's kappa. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.stats.intervals import Interval, wilson


@dataclass(frozen=True)
class Agreement:
    """Counts of answers by what people and the judge said."""

    both_right: int = 0
    both_wrong: int = 0
    wrongly_passed: int = 0
    """The judge says right, people say wrong."""
    wrongly_failed: int = 0
    unjudged: int = 0
    """The judge gave no verdict; they count neither way."""

    @property
    def judged(self) -> int:
        return self.both_right + self.both_wrong + self.wrongly_passed + self.wrongly_failed

    @property
    def share(self) -> Interval | None:
        """The share of judged answers on which both agree."""
        return wilson(self.both_right + self.both_wrong, self.judged) if self.judged else None

    @property
    def kappa(self) -> float | None:
        """Agreement beyond chance: 1 is perfect, 0 is what chance would give. None if chance alone would give full
        agreement, because both always say the same."""
        total = self.judged
        if not total:
            return None
        observed = (self.both_right + self.both_wrong) / total
        people, judge = self.both_right + self.wrongly_failed, self.both_right + self.wrongly_passed
        chance = (people * judge + (total - people) * (total - judge)) / total**2
        return None if chance == 1 else (observed - chance) / (1 - chance)


def agreement(verdicts: Iterable[tuple[bool, bool | None]]) -> Agreement:
    """From pairs of what people say and what the judge says, None if it gave no verdict."""
    counts = {"both_right": 0, "both_wrong": 0, "wrongly_passed": 0, "wrongly_failed": 0, "unjudged": 0}
    for right, passed in verdicts:
        if passed is None:
            counts["unjudged"] += 1
        elif right:
            counts["both_right" if passed else "wrongly_failed"] += 1
        else:
            counts["wrongly_passed" if passed else "both_wrong"] += 1
    return Agreement(**counts)
