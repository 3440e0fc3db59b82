"""Follows the pods of an instance through the watch of the API server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from orchestrator.engines.kubernetes.api import KubeApi
from orchestrator.engines.kubernetes.facts import read_pod

EXPIRED = 410


class PodChanges:
    """Names of pods that have changed in a way that matters. It goes on from where a watch ended; if the API server no
    longer knows that version, it lists everything anew."""

    def __init__(self, api: KubeApi, selector: str, now: Callable[[], datetime]) -> None:
        self._api, self._selector, self._now = api, selector, now
        self._stopped = threading.Event()
        self._seen: dict[str, object] = {}

    def names(self, streams: list[Any]) -> Iterator[str]:
        version: str | None = None
        while not self._stopped.is_set():
            if version is None:
                answer = self._api.pods(self._selector)
                version = str(answer["metadata"]["resourceVersion"])
                yield from self._compare(answer.get("items") or [])
            streams.clear()
            for event in self._api.watch_pods(self._selector, version, streams, self._stopped):
                if event.get("type") == "ERROR":
                    version = None  # mostly 410: that version is too old
                    break
                described = event["object"]
                version = str(described["metadata"]["resourceVersion"])
                if event["type"] == "BOOKMARK":
                    continue
                name = str(described["metadata"]["name"])
                if event["type"] == "DELETED":
                    self._seen.pop(name, None)
                    yield name
                elif self._is_news(described):
                    yield name

    def stop(self, streams: list[Any]) -> None:
        self._stopped.set()
        self._api.close_streams(streams)

    def _compare(self, pods: list[dict[str, Any]]) -> Iterator[str]:
        """After a gap: what has changed or disappeared meanwhile. At the first look nothing is news."""
        first = not self._seen
        names = {str(described["metadata"]["name"]) for described in pods}
        gone = [name for name in self._seen if name not in names]
        for name in gone:
            del self._seen[name]
        changed = [str(described["metadata"]["name"]) for described in pods if self._is_news(described)]
        if not first:
            yield from [*gone, *changed]

    def _is_news(self, described: dict[str, Any]) -> bool:
        facts = read_pod(described, self._now())
        news = (facts.container_id, facts.state, facts.detail, facts.placed_at)
        if self._seen.get(facts.name) == news:
            return False
        self._seen[facts.name] = news
        return True
