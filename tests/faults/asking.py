"""Asks a service that is in trouble: which answers it gives, and that no promise among them is false."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import httpx

from tests.faults.service import Service


@dataclass
class Asking:
    """Creates models and reads them, again and again, on a thread of its own, until the block ends.

    A model is the smallest thing that the API stores; its slug is its key, so a second try never makes a second one.
    """

    service: Service
    prefix: str
    every_s: float = 0.2
    created: list[str] = field(default_factory=list)
    """Acknowledged with 201: they must be there."""
    answers: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """Answers that must not be: a 5xx but 503 and 507, or a 503 without Retry-After."""
    reads: Counter[int] = field(default_factory=Counter)
    last_refusal: str = ""

    def __enter__(self) -> Asking:
        self._over = threading.Event()
        self._client = httpx.Client(base_url=self.service.url, headers=self.service.client.headers, timeout=120)
        self._thread = threading.Thread(target=self._ask_on, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join(240)
        self._client.close()

    def _ask_on(self) -> None:
        number = 0
        while not self._over.is_set():
            number += 1
            try:
                self.once(f"{self.prefix}-{number}")
            except httpx.TransportError as error:
                self.wrong.append(f"no answer: {error!r}")
            self._over.wait(self.every_s)

    @property
    def refused(self) -> int:
        return self.answers[503] + self.answers[507]

    def once(self, slug: str) -> int:
        body = {"slug": slug, "provider": "openai", "name": "counting", "input_price": 1.0, "output_price": 2.0}
        answer = self._client.post("/api/models", json=body)
        self.answers[answer.status_code] += 1
        if answer.status_code == 201:
            self.created.append(slug)
        elif answer.status_code in (503, 507):
            self.last_refusal = str(answer.json().get("detail", ""))
            if answer.status_code == 503 and "retry-after" not in answer.headers:
                self.wrong.append("503 without Retry-After")
        else:
            self.wrong.append(f"{answer.status_code}: {answer.text[:200]}")
        read = self._client.get("/api/models", params={"limit": 1})
        self.reads[read.status_code] += 1
        if read.status_code not in (200, 503):
            self.wrong.append(f"reading: {read.status_code}: {read.text[:200]}")
        return answer.status_code

    def until_stored(self, within_s: float = 300) -> None:
        """Wait until something asked from now on is stored."""
        before, end = len(self.created), time.monotonic() + within_s
        while len(self.created) == before:
            assert time.monotonic() < end, f"nothing is stored again: {self.answers} {self.last_refusal}"
            time.sleep(0.05)

    def check(self, slugs: set[Any]) -> None:
        """Nothing wrong was answered, and what was promised is there."""
        assert not self.wrong, self.wrong[:5]
        missing = [slug for slug in self.created if slug not in slugs]
        assert not missing, f"acknowledged but not stored: {missing}"
