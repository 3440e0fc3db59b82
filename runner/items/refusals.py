"""Does a provider refuse every call? Counts what the first calls of a run meet. Pure.

An error that every call would meet ends a run after a few calls instead of after all of them. An error that belongs to one
question (its context is too long, a filter refused it) never does, and as soon as one call got an answer, nothing does: the
rest is asked, and what fails is left out of the score.
"""

import re

from runner.contract.run_spec import ErrorScope
from runner.errors import ProviderFailed

CERTAIN = 3
"""So many calls meet an error that the gateway knows to concern every call."""
ALIKE = 5
"""So many calls in a row meet the same client error that says neither."""
_RETRIED = frozenset({408, 409, 425, 429})
_VARYING = re.compile(r"[0-9a-f]{8,}|\d+", re.IGNORECASE)


class Refusals:
    """Of one attempt with so many items; `measured_before` says that earlier attempts have results already."""

    def __init__(self, items: int, *, measured_before: bool = False) -> None:
        self._certain_at, self._alike_at = min(CERTAIN, items), min(ALIKE, items)
        self._measured_before = measured_before
        self._answered = False
        self._certain = self._alike = 0
        self._last = ""

    def answered(self) -> None:
        """A call got an answer: the provider does not refuse every one."""
        self._answered = True

    def refused(self, error: ProviderFailed) -> bool:
        """Whether the run should end with this error."""
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
