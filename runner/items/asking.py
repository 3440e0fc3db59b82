"""Asks one model of a run, and notices if its provider refuses every call."""

from runner.errors import ProviderFailed
from runner.items.refusals import Refusals
from runner.llm.calls import Calls
from runner.llm.client import Completion, Prompt


class Asker:
    """`items` is the number of items that will ask; `measured_before` says that earlier attempts have results."""

    def __init__(self, calls: Calls, items: int, *, measured_before: bool) -> None:
        self._calls = calls
        self._refusals = Refusals(items, measured_before=measured_before)
        self._refused: ProviderFailed | None = None

    async def ask(self, prompt: Prompt, call_key: str) -> Completion:
        """Raises a `CallError`. After too many refusals, calls that were not made yet wait until `end` or an answer."""
        try:
            completion = await self._calls.ask(prompt, call_key)
        except ProviderFailed as error:
            if self._refusals.refused(error):
                self._refused = error
                self._calls.hold()
            raise
        self._refusals.answered()
        self._refused = None
        self._calls.go_on()
        return completion

    @property
    def refused(self) -> ProviderFailed | None:
        """The error that every call meets. Refusals arrive before answers, so calls under way must end first."""
        return None if self._calls.in_flight else self._refused

    def end(self) -> None:
        self._calls.end()
