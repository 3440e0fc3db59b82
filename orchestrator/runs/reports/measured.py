"""Was anything measured? Says how a run ends in which no item counts. Pure.

An item counts unless it ended with an error of the provider or of our own machinery. A run without one that counts has no
score, so it failed, whatever its runner says; the most frequent error among its items is its message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.runs.reasons import Reason
from runner.contract.events import NOT_THE_MODELS_FAULT, Outcome

OutcomeDetail = tuple[str, str, int]
"""(outcome, detail, number of items)"""


def counts(outcomes: Mapping[str, int]) -> bool:
    """Whether any item of a run counts, from the number of items by outcome."""
    return any(number for outcome, number in outcomes.items() if Outcome(outcome) not in NOT_THE_MODELS_FAULT)


def nothing_measured(
    details: Sequence[OutcomeDetail], early: Reason | None = None, message: str | None = None
) -> tuple[Reason, str]:
    """Reason and message of a run in which no item counts. `early` and `message`: why it ended before its last item."""
    by_outcome: dict[str, int] = {}
    for outcome, _, number in details:
        by_outcome[outcome] = by_outcome.get(outcome, 0) + number
    worst = max(by_outcome, key=lambda each: by_outcome[each], default=None)
    said = max((row for row in details if row[0] == worst), key=lambda row: row[2], default=("", "", 0))[1]
    reason = early or (Reason.PROVIDER_ERROR if worst == Outcome.PROVIDER_ERROR else Reason.NOTHING_MEASURED)
    why = message if early and message else said
    ended = ", ".join(f"{number} {outcome}" for outcome, number in sorted(by_outcome.items()))
    facts = f"nothing was measured ({ended or 'no item was finished'})"
    return reason, f"{facts}: {why}" if why else facts
