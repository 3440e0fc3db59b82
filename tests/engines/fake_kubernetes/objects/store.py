"""The objects of the cluster with their revisions, and the history that watches read. Knows no kind's rules."""

from __future__ import annotations

import copy
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from tests.engines.fake_kubernetes.objects import answers
from tests.engines.fake_kubernetes.objects.answers import Json
from tests.engines.fake_kubernetes.objects.resources import Resource

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Change:
    """One write: the object before and after it, None where there was none."""

    revision: int
    resource: Resource
    before: Json | None
    after: Json | None


def timestamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


class Store:
    """Every method may be called from any thread. Objects that come out are copies, except within `locked`."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.now = now
        self.revision = 1
        self.compacted = 0
        """Watches from an older revision are refused with 410."""
        self.history: list[Change] = []
        self._objects: dict[Resource, dict[Key, Json]] = {}

    def get(self, resource: Resource, namespace: str | None, name: str) -> Json | None:
        with self.changed:
            stored = self._objects.get(resource, {}).get((resource.plural, namespace or "", name))
            return copy.deepcopy(stored)

    def need(self, resource: Resource, namespace: str | None, name: str) -> Json:
        stored = self.get(resource, namespace, name)
        if stored is None:
            raise answers.not_found(resource.qualified, name)
        return stored

    def all(self, resource: Resource, namespace: str | None = None) -> list[Json]:
        with self.changed:
            stored = self._objects.get(resource, {})
            return [copy.deepcopy(item) for key, item in sorted(stored.items()) if namespace in (None, key[1])]

    def everything(self) -> Iterator[tuple[Resource, Json]]:
        with self.changed:
            for resource, stored in self._objects.items():
                for item in [*stored.values()]:
                    yield resource, item

    def create(self, resource: Resource, item: Json) -> Json:
        meta = item["metadata"]
        with self.changed:
            if self.get(resource, meta.get("namespace"), meta["name"]) is not None:
                raise answers.already_exists(resource.qualified, meta["name"])
            meta["uid"] = str(uuid.uuid4())
            meta["creationTimestamp"] = timestamp(self.now())
            return self._write(resource, None, item)

    def update(self, resource: Resource, item: Json) -> Json:
        """Replace an object that exists; an update that changes nothing makes no revision."""
        meta = item["metadata"]
        with self.changed:
            before = self.need(resource, meta.get("namespace"), meta["name"])
            if meta.get("uid", before["metadata"]["uid"]) != before["metadata"]["uid"]:
                why = f'Invalid value: "{meta["uid"]}": field is immutable'
                raise answers.invalid(resource.kind, meta["name"], "metadata.uid", why, times=2)
            if meta.get("resourceVersion", before["metadata"]["resourceVersion"]) != before["metadata"]["resourceVersion"]:
                raise answers.modified(resource.qualified, meta["name"])
            return before if item == before else self._write(resource, before, item)

    def delete(self, resource: Resource, namespace: str | None, name: str, uid: str | None = None) -> Json | None:
        """Remove it at once; with `uid`, only if it is still that object."""
        with self.changed:
            before = self.get(resource, namespace, name)
            if before is None or uid not in (None, before["metadata"]["uid"]):
                return None
            del self._objects[resource][resource.plural, namespace or "", name]
            self.revision += 1
            last = copy.deepcopy(before)
            last["metadata"]["resourceVersion"] = str(self.revision)
            self.history.append(Change(self.revision, resource, last, None))
            self.changed.notify_all()
            return last

    def compact(self) -> None:
        """Forget the history: whoever watches from before is told 410."""
        with self.changed:
            self.revision += 1
            self.compacted = self.revision
            self.history.clear()
            self.changed.notify_all()

    def _write(self, resource: Resource, before: Json | None, item: Json) -> Json:
        self.revision += 1
        stored = copy.deepcopy(item)
        stored["metadata"]["resourceVersion"] = str(self.revision)
        meta = stored["metadata"]
        self._objects.setdefault(resource, {})[resource.plural, meta.get("namespace", ""), meta["name"]] = stored
        self.history.append(Change(self.revision, resource, before, copy.deepcopy(stored)))
        self.changed.notify_all()
        return copy.deepcopy(stored)
