"""What watches a scene while faults happen: the containers that live at once, and the answers of the API."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections import defaultdict

import httpx

RUN = "benchyard.run"


class Containers:
    """Follows the engine's events and notes every run that ever had two live containers."""

    def __init__(self, instance: str, docker_host: str | None = None) -> None:
        self.doubles: list[str] = []
        self.died: dict[str, list[float]] = defaultdict(list)
        """When containers of a run ended, by the engine's clock."""
        self._live: dict[str, set[str]] = defaultdict(set)
        self._environment = os.environ | ({"DOCKER_HOST": docker_host} if docker_host else {})
        filters = ["--filter", f"label=benchyard.instance={instance}", "--filter", "type=container"]
        self._command = ["docker", "events", "--format", "{{json .}}", *filters]
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._stopped = threading.Event()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._process is not None:
            self._process.terminate()
        if self._thread.is_alive():
            self._thread.join(10)

    def _follow(self) -> None:
        while not self._stopped.is_set():
            with subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self._environment
            ) as self._process:
                assert self._process.stdout is not None
                for line in self._process.stdout:
                    self._note(json.loads(line))
            self._live.clear()  # the engine went away: what happened meanwhile is not known
            self._stopped.wait(0.5)

    def _note(self, event: dict[str, object]) -> None:
        actor = event.get("Actor") or {}
        assert isinstance(actor, dict)
        run_id, container = actor.get("Attributes", {}).get(RUN), str(actor.get("ID"))
        if not run_id:
            return
        if event.get("Action") == "start":
            self._live[run_id].add(container)
            if len(self._live[run_id]) > 1:
                self.doubles.append(run_id)
        elif event.get("Action") in ("die", "destroy"):
            self._live[run_id].discard(container)
            if event.get("Action") == "die":
                self.died[run_id].append(int(str(event["timeNano"])) / 1e9)


class Answers:
    """Every answer that the service must never give: a 5xx, but for 503 with Retry-After."""

    def __init__(self, client: httpx.Client) -> None:
        self.bad: list[str] = []
        client.event_hooks = {"response": [self.note]}

    def note(self, response: httpx.Response) -> None:
        if response.status_code < 500 or response.url.path == "/readyz":
            return
        if response.status_code != 503 or "retry-after" not in response.headers:
            self.bad.append(f"{response.request.method} {response.url.path}: {response.status_code}")
