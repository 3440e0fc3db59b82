"""Watches of the store, as streams of lines; and what goes wrong with them: expired, cut, silent."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tests.engines.fake_kubernetes.api_server.selectors import Predicate
from tests.engines.fake_kubernetes.objects import answers
from tests.engines.fake_kubernetes.objects.answers import Json
from tests.engines.fake_kubernetes.objects.resources import Resource
from tests.engines.fake_kubernetes.objects.store import Change, Store


class CutOff(Exception):
    """The stream ends without the end of its answer."""


class Order(StrEnum):
    """What a test tells every watch that is open."""

    BOOKMARK = "bookmark"  #: say how far it has come
    EXPIRE = "expire"  #: end with 410
    CUT = "cut"  #: break the connection between two events
    CUT_WITHIN = "cut within"  #: break the connection in the middle of an event
    END = "end"  #: end properly, as after `timeoutSeconds`


@dataclass(eq=False)
class Watch:
    resource: Resource
    namespace: str | None
    wanted: Predicate
    revision: int
    bookmarks: bool
    timeout_s: float | None
    order: Order | None = None


def _line(kind: str, item: Json) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


class Watches:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: list[Watch] = []
        self._closed = False
        self.silent = False
        """Open watches say nothing, whatever happens: half-open connections."""

    @property
    def count(self) -> int:
        return len(self._open)

    def tell(self, order: Order) -> None:
        with self._store.changed:
            for watch in self._open:
                watch.order = order
            self._store.changed.notify_all()

    def close(self) -> None:
        """Every watch is cut and none begins until `reopen`."""
        with self._store.changed:
            self._closed = True
            self._store.changed.notify_all()

    def reopen(self) -> None:
        self._closed = False

    def stream(self, watch: Watch) -> Iterator[bytes]:
        with self._store.changed:
            if 0 < watch.revision < self._store.compacted:
                refusal = answers.expired(watch.revision, self._store.compacted)
                return iter([_line("ERROR", refusal.body())])
            first = []
            if watch.revision == 0:
                existing = self._store.all(watch.resource, watch.namespace)
                first = [_line("ADDED", item) for item in existing if watch.wanted(item)]
                watch.revision = self._store.revision
            self._open.append(watch)
        return self._lines(watch, first)

    def _lines(self, watch: Watch, first: list[bytes]) -> Iterator[bytes]:
        end = None if watch.timeout_s is None else time.monotonic() + watch.timeout_s
        try:
            yield b"".join(first)
            while True:
                with self._store.changed:
                    lines = self._next(watch)
                    if not lines and watch.order is None:
                        self._store.changed.wait(None if end is None else max(0.0, end - time.monotonic()))
                        lines = self._next(watch)
                    order, watch.order = watch.order, None
                    if self._closed:
                        raise CutOff
                yield from lines
                yield from self._obey(watch, order)
                if order in (Order.EXPIRE, Order.END) or (end is not None and time.monotonic() >= end):
                    return
        finally:
            with self._store.changed:
                self._open.remove(watch)

    def _obey(self, watch: Watch, order: Order | None) -> Iterator[bytes]:
        match order:
            case Order.BOOKMARK if watch.bookmarks:
                yield self._bookmark(watch)
            case Order.EXPIRE:
                yield _line("ERROR", answers.expired(watch.revision, self._store.revision).body())
            case Order.CUT:
                raise CutOff
            case Order.CUT_WITHIN:
                yield self._bookmark(watch)[:20]
                raise CutOff

    def _bookmark(self, watch: Watch) -> bytes:
        resource = watch.resource
        item = {"kind": resource.kind, "apiVersion": resource.api_version}
        return _line("BOOKMARK", {**item, "metadata": {"resourceVersion": str(watch.revision), "creationTimestamp": None}})

    def _next(self, watch: Watch) -> list[bytes]:
        if self.silent:
            return []
        changes = [change for change in self._store.history if change.revision > watch.revision]
        watch.revision = self._store.revision
        return [line for change in changes if (line := self._event(watch, change))]

    def _event(self, watch: Watch, change: Change) -> bytes | None:
        """An object that begins or ceases to match the selector is added or deleted, as far as this watch knows."""
        item = change.after or change.before
        if change.resource is not watch.resource or item is None:
            return None
        if watch.namespace not in (None, item["metadata"].get("namespace")):
            return None
        was = change.before is not None and watch.wanted(change.before)
        becomes = change.after is not None and watch.wanted(change.after)
        if becomes:
            return _line("MODIFIED" if was else "ADDED", item)
        return _line("DELETED", item) if was else None
