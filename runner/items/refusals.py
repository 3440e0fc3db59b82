"""Detects a provider that refuses every call, from the errors of a run's first calls. Pure.

An error that every call would meet ends a run after a few calls instead of after all of them. An error of a single call
(context too long, refused by a filter) never ends a run. Once any call got an answer, no error does: the remaining items
are asked, and those that fail are left out of the score.
"""

import re

from runner.contract.run_spec import ErrorScope
from runner.errors import ProviderFailed

CERTAIN = 3
"""The run ends after this many calls with an error that affects every call, according to the gateway."""
ALIKE = 5
"""The run ends after this many calls in a row with the same client error of unknown scope."""
_RETRIED = frozenset({408, 409, 425, 429})
_VARYING = re.compile(r"[0-9a-f]{8,}|\d+", re.IGNORECASE)


class Refusals:
    """Counts for one attempt with `items` items; `measured_before` says that earlier attempts already have results."""

    def __init__(self, items: int, *, measured_before: bool = False) -> None:
        self._certain_at, self._alike_at = min(CERTAIN, items), min(ALIKE, items)
        self._measured_before = measured_before
        self._answered = False
        self._certain = self._alike = 0
        self._last = ""

    def answered(self) -> None:
        """Records that a call got an answer, so the provider does not refuse every call."""
        self._answered = True

    def refused(self, error: ProviderFailed) -> bool:
        """Records a failed call; returns whether the run should end with this error."""
        if self._answered:
            return False
        if error.hopeless:
            self._certain += 1
            self._last, self._alike = "", 0
            return self._certain >= self._certain_at
        if error.scope == ErrorScope.ITEM or not 400 <= error.status < 500 or error.status in _RETRIED:
            self._last, self._alike = "", 0
            return False
        text = _VARYING.sub("#", str(error))
        self._alike = self._alike + 1 if text == self._last else 1
        self._last = text
        return self._alike >= self._alike_at and not self._measured_before
