"""Names the model calls of a harness, which does not name them itself. Pure.

A call is named by its question and by how often that question was asked before: the n-th time, the key ends with n. A
harness that is started again asks the same questions, in any order, and gets the answers that were already paid for. A
number is used up when its answer was delivered. If the client leaves before that, or gets an error, the next client with
the same question gets the same number, so that a repeated request joins the call instead of buying a second one.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

PREFIX = "harness"
DELIVERY_FIELDS = frozenset({"stream", "stream_options"})
"""Fields that only control how an answer is delivered."""


def question_digest(path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """The identity of a question. `headers` are those that are part of it."""
    question = {name: value for name, value in body.items() if name not in DELIVERY_FIELDS}
    text = json.dumps([path, question, sorted(headers.items())], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def key_of(digest: str, number: int) -> str:
    """In the form of all call keys, with the number in the place of the sample: the gateway reuses answers by sample."""
    return f"{PREFIX}/{digest}/{number}/0"


class CallNumbers:
    """The numbers of one attempt; each attempt counts from 0."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}
        self._free: dict[str, set[int]] = {}
        self._last: dict[str, int] = {}
        self._open: Counter[str] = Counter()

    def under_way(self, digest: str) -> bool:
        """Whether a client waits for an answer to this question."""
        return self._open[digest] > 0

    def take(self, digest: str, *, repeated: bool = False) -> int:
        """The number for a request. `repeated`: the client says that it has sent this request before, so an answer that was
        delivered did not reach it."""
        self._open[digest] += 1
        if free := self._free.get(digest):
            number = min(free)
            free.remove(number)
            return number
        if repeated and digest in self._last:
            return self._last[digest]
        number = self._next.get(digest, 0)
        self._next[digest] = number + 1
        return number

    def delivered(self, digest: str, number: int) -> None:
        self._open[digest] -= 1
        self._last[digest] = number

    def released(self, digest: str, number: int) -> None:
        """The answer did not reach the client."""
        self._open[digest] -= 1
        if number != self._last.get(digest):
            self._free.setdefault(digest, set()).add(number)
