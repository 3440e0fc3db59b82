"""Instance types for which the engine had no room lately, such as when a quota was used up.

Their runs wait in the queue. One of them is tried now and then; the first that is accepted opens the way for the others.
"""

from __future__ import annotations

from orchestrator.system.clock import Clock

PAUSE_S = 5.0


class RoomRefusals:
    def __init__(self, clock: Clock, pause_s: float = PAUSE_S) -> None:
        self._clock, self._pause_s = clock, pause_s
        self._words: dict[str, str] = {}
        self._next_try: dict[str, float] = {}

    def refused(self, instance_type: str, words: str) -> None:
        self._words[instance_type] = words
        self._next_try[instance_type] = self._clock.monotonic() + self._pause_s

    def accepted(self, instance_type: str) -> None:
        self._words.pop(instance_type, None)
        self._next_try.pop(instance_type, None)

    def may_try(self, instance_type: str) -> bool:
        """Whether a run of this type may be started now."""
        return self._clock.monotonic() >= self._next_try.get(instance_type, 0.0)

    def tried(self, instance_type: str) -> None:
        """A run of this type is being started: while the last word was a refusal, the next one waits for its outcome."""
        if instance_type in self._words:
            self._next_try[instance_type] = self._clock.monotonic() + self._pause_s

    def why(self, instance_type: str) -> str | None:
        """Why runs of this type wait, or None."""
        words = self._words.get(instance_type)
        return None if words is None else f"the engine has no room for {instance_type}: {words}"
