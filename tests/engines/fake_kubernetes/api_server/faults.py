"""Failures of the API server's answers, asked for by tests: one object per failure, taken in the order of the requests."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from enum import StrEnum

from tests.engines.fake_kubernetes.objects.answers import Refusal


class Harm(StrEnum):
    """What happens to a request."""

    REFUSED = "refused"  #: it is answered with `refusal` and not carried out
    REQUEST_LOST = "request lost"  #: the connection is cut before it is carried out
    ANSWER_LOST = "answer lost"  #: it is carried out, then the connection is cut
    HALF_ANSWER = "half answer"  #: it is carried out, and half of the answer's body arrives before the connection is cut
    NONSENSE = "nonsense"  #: it is carried out, and the answer is not JSON
    HANGS = "hangs"  #: nothing is answered until `release`; then it is carried out
    HANGS_AFTER = "hangs after"  #: it is carried out, and nothing is answered until `release`


@dataclass
class Fault:
    """Applies to requests whose `METHOD path?query` the pattern matches, after `skip` of them, `times` times."""

    harm: Harm
    pattern: str = ""
    refusal: Refusal | None = None
    skip: int = 0
    times: int | None = None
    released: threading.Event = field(default_factory=threading.Event)
    hits: int = 0

    def release(self) -> None:
        self.released.set()


class Faults:
    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()
        self.requests: list[str] = []
        """Every request as `METHOD path?query`, harmed or not."""

    def add(self, fault: Fault) -> Fault:
        with self._lock:
            self._faults.append(fault)
        return fault

    def refuse(self, refusal: Refusal, pattern: str = "", *, skip: int = 0, times: int | None = None) -> Fault:
        return self.add(Fault(Harm.REFUSED, pattern, refusal, skip, times))

    def clear(self) -> None:
        """From now on all goes well; what hangs is released."""
        with self._lock:
            for fault in self._faults:
                fault.release()
            self._faults.clear()

    def take(self, request: str) -> Fault | None:
        """The fault that this request meets, if any."""
        with self._lock:
            self.requests.append(request)
            for fault in self._faults:
                if not re.search(fault.pattern, request):
                    continue
                if fault.skip > 0:
                    fault.skip -= 1
                    continue
                if fault.times is not None and fault.hits >= fault.times:
                    continue
                fault.hits += 1
                return fault
        return None
