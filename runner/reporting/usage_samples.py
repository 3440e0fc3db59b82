"""The usage samples of an attempt that are not acknowledged yet."""

import time
from collections import deque
from collections.abc import Callable, Iterable

from runner.contract.events import UsageSample
from runner.process.kernel_usage import Reading

FIRST_STEP_S, LAST_STEP_S = 0.1, 30.0
STEPS_AT_ONCE = 60
MAX_WAITING = 200


class UsageLog:
    """Unacknowledged samples: frequent at first, rare in a long run, never more than a few hundred."""

    def __init__(
        self,
        read: Callable[[], Reading | None],
        clock: Callable[[], float] = time.monotonic,
        *,
        age_s: float = 0.0,
        early: Iterable[tuple[float, Reading]] = (),
    ) -> None:
        """`age_s`: the age of what is measured; `early`: readings taken so far, by age."""
        self._read, self._clock = read, clock
        self._began = clock() - age_s
        self._waiting = deque(_sample(at_s, reading) for at_s, reading in early)

    @property
    def age_s(self) -> float:
        """The current age of what is measured."""
        return self._clock() - self._began

    @property
    def step_s(self) -> float:
        """Seconds until the next sample."""
        return min(max(self.age_s / STEPS_AT_ONCE, FIRST_STEP_S), LAST_STEP_S)

    def take(self) -> None:
        """Adds a sample, if usage can be read."""
        reading = self._read()
        if reading is None:
            return
        self._waiting.append(_sample(self.age_s, reading))
        if len(self._waiting) > MAX_WAITING:
            self._waiting = deque(list(self._waiting)[1::2])

    def waiting(self) -> list[UsageSample]:
        return list(self._waiting)

    def sent(self, samples: list[UsageSample]) -> None:
        """Drops samples that are stored."""
        while samples and self._waiting and self._waiting[0].at_s <= samples[-1].at_s:
            self._waiting.popleft()


def _sample(at_s: float, reading: Reading) -> UsageSample:
    return UsageSample(
        at_s=round(at_s, 3),
        cpu_s=round(reading.cpu_s, 3),
        memory_bytes=reading.memory_bytes,
        throttled_s=None if reading.throttled_s is None else round(reading.throttled_s, 3),
    )
