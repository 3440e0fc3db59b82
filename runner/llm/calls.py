"""Repeats a model call while the gateway is unreachable, with the same call key each time.

The gateway handles the provider's retries and stores every answer it paid for. The runner handles the connection to the
gateway: the orchestrator may restart, a stream may be cut. It then repeats the call for many minutes, and reports the wait.
"""

import asyncio
import random
import time
from collections.abc import Callable

from runner.errors import CallsEnded, GatewayAway
from runner.llm.client import Completion, LlmClient, Prompt
from runner.log import Log

PATIENCE_S = 20 * 60.0
MAX_PAUSE_S = 10.0
SLOW_S = 20.0


class Calls:
    """Makes model calls, at most `concurrency` at once.

    Gives up on the gateway only while the orchestrator is otherwise `reachable`: if it is down altogether, perhaps for
    hours, no item is given up.
    """

    def __init__(
        self,
        client: LlmClient,
        concurrency: int,
        log: Log,
        *,
        changed: Callable[[], None] = lambda: None,
        reachable: Callable[[], bool] = lambda: True,
        patience_s: float = PATIENCE_S,
        max_pause_s: float = MAX_PAUSE_S,
    ) -> None:
        self._client, self._log, self._changed, self._reachable = client, log, changed, reachable
        self._room = asyncio.Semaphore(concurrency)
        self._patience_s, self._max_pause_s = patience_s, max_pause_s
        self._open = asyncio.Event()
        self._open.set()
        self._ended = False
        self._trouble: dict[str, str] = {}
        self._since: dict[str, float] = {}

    async def ask(self, prompt: Prompt, call_key: str) -> Completion:
        """Raises `GatewayAway` when it gives up, and any other `CallError` at once."""
        async with self._room:
            await self._open.wait()
            if self._ended:
                raise CallsEnded("the run ends early")
            self._since[call_key] = time.monotonic()
            try:
                return await self._patiently(prompt, call_key)
            finally:
                self._since.pop(call_key, None)
                if self._trouble.pop(call_key, None) and not self._trouble:
                    self._changed()

    @property
    def in_flight(self) -> int:
        """How many calls have started and not ended."""
        return len(self._since)

    def hold(self) -> None:
        """Starts no new call until `go_on` or `end`."""
        self._open.clear()

    def go_on(self) -> None:
        self._open.set()

    def end(self) -> None:
        """Ends queued calls before they are made."""
        self._ended = True
        self._open.set()

    async def _patiently(self, prompt: Prompt, call_key: str) -> Completion:
        failures, give_up = 0, 0.0
        while True:
            try:
                return await self._client.complete(prompt, call_key)
            except GatewayAway as error:
                now = time.monotonic()
                if not (give_up and self._reachable()):
                    give_up = now + self._patience_s
                pause = min(0.2 * 2 ** min(failures, 10), self._max_pause_s) * random.uniform(0.7, 1.3)
                pause = max(pause, min(error.retry_after_s or 0.0, 60.0))
                if now + pause > give_up:
                    raise
                failures += 1
                self._log("call.again", call=call_key, trouble=str(error), tries=failures)
                if not self._trouble:
                    self._changed()
                self._trouble[call_key] = str(error)
            await asyncio.sleep(pause)

    @property
    def waiting_for(self) -> str | None:
        """What the calls wait for, in words; None if for nothing unusual."""
        if self._trouble:
            return f"the gateway, {len(self._trouble)} calls are tried again: {next(iter(self._trouble.values()))}"[:300]
        if not self._since:
            return None
        longest = time.monotonic() - min(self._since.values())
        return f"the model, {len(self._since)} calls, the longest for {longest:.0f} s" if longest > SLOW_S else None
