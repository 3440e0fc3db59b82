"""A real Benchyard as a separate process, with its own data directory, ports, runner network and (if asked) database.

For tests that kill things: it starts, kills and restarts the orchestrator, and looks at the engine from outside, with the
`docker` command, as an operator would.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import httpx

ROOT = Path(__file__).parents[2]
SERVE = ("-c", "from orchestrator.cli.entry import main; main()")
"""The `benchyard` command, for the interpreter."""
TOKEN = "test-token-" + uuid.uuid4().hex
BUSY = 10
"""How many times longer than on a quiet machine something may take. What works ends its wait at once."""


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def docker(*arguments: str, check: bool = True) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=60 * BUSY, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"docker {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def pause(name: str) -> None:
    """With control groups of version 1, runc does not always manage to freeze what is busy: it is asked again."""

    def paused() -> bool:
        docker("pause", name, check=False)
        return docker("inspect", "--format", "{{.State.Paused}}", name) == "true"

    wait_for(paused, 30, f"{name} is paused")


def wait_for(condition: Callable[[], Any], within_s: float, what: str | Callable[[], str], every_s: float = 0.1) -> Any:
    """The first true value of `condition`, or a failure that names `what`. `within_s` is meant for a quiet machine."""
    end = time.monotonic() + within_s * BUSY
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {within_s * BUSY} s: {what if isinstance(what, str) else what()}")
        time.sleep(every_s)


class Service:
    def __init__(
        self,
        data: Path,
        *,
        database_url: str | None = None,
        environment: Mapping[str, str] | None = None,
        **settings: object,
    ) -> None:
        self.data = data
        self.port, self.runner_port = free_ports(2)
        self.instance = "test-" + uuid.uuid4().hex[:10]
        self.network = f"benchyard-{self.instance}"
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._env = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("BENCHYARD_", "DATABASE_URL"))},
            **(environment or {}),
            "BENCHYARD_DATA": str(data),
            "BENCHYARD_PORT": str(self.port),
            "BENCHYARD_RUNNER_PORT": str(self.runner_port),
            "BENCHYARD_RUNNER_NETWORK": self.network,
            "BENCHYARD_INSTANCE": self.instance,
            "BENCHYARD_TOKEN": TOKEN,
            "BENCHYARD_ENGINE": "docker",
            "BENCHYARD_RECONCILE_S": "2",
            "BENCHYARD_HEARTBEAT_S": "2",
            "BENCHYARD_LEASE_S": "60",
            "BENCHYARD_SUSPECT_S": "60",
            "BENCHYARD_START_TIMEOUT_S": "600",
            "BENCHYARD_REQUEST_TIMEOUT_S": "600",
            **{f"BENCHYARD_{key.upper()}": str(value) for key, value in settings.items()},
        }
        if database_url:
            self._env["DATABASE_URL"] = database_url
        self.program: Sequence[str] = SERVE
        """Another one starts the same service with something done to it, from the next start on."""
        self.extra: dict[str, str] = {}
        """Added to the environment at each start."""
        self.root = ROOT
        """The source tree that it is started from."""
        self.client = httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60 * BUSY)

    def start(self) -> None:
        self.begin()
        wait_for(self._ready, 180, lambda: f"the service is ready; log: {self.log_tail()}")

    def begin(self) -> None:
        """Start it without waiting until it is ready."""
        self.data.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = self.popen([sys.executable, *self.program, "serve"], {**self._env, **self.extra}, log)

    def popen(self, command: list[str], env: dict[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, cwd=self.root, env=env, stdout=log, stderr=log, start_new_session=True)

    @property
    def log(self) -> Path:
        return self.data / "service.log"

    @property
    def gone(self) -> bool:
        """Its process has ended."""
        return self._process is None or self._process.poll() is not None

    def docker(self, *arguments: str, check: bool = True) -> str:
        """The command of its engine."""
        return docker(*arguments, check=check)

    def _ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"the service ended with {self._process.returncode}: {self.log_tail()}")
        with suppress(httpx.HTTPError):
            return self.client.get("/readyz").status_code == 200
        return False

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """As kill -9 does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """As an operator does."""
        self.signal(signal.SIGTERM)
        assert self._process is not None
        self._process.wait(60 * BUSY)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def close(self) -> None:
        """Stop it and remove what it made, whatever state it is in."""
        if self._process is not None and self._process.poll() is None:
            with suppress(ProcessLookupError):
                self.signal(signal.SIGCONT)
                self.signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(60)
            if self._process.poll() is None:
                self.kill()
        self.client.close()
        self.clean()

    def clean(self) -> None:
        """Remove what it made on its engine."""
        for name in self.containers(all_states=True):
            self.docker("rm", "-f", name, check=False)
        self.docker("network", "rm", self.network, check=False)

    def log_tail(self) -> str:
        return self.log.read_text()[-3000:] if self.log.exists() else ""

    # what a user does

    def submit(self, model: str = "demo-strong", sample_size: int = 12, **fields: object) -> str:
        body = {"model_id": model, "sample_size": sample_size, "instance_type": "standard-1", **fields}
        answer = self.client.post("/api/container-runs", json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["run_id"])

    def run(self, run_id: str) -> dict[str, Any]:
        answer = self.client.get(f"/api/container-runs/{run_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def wait_status(self, run_id: str, *statuses: str, within_s: float = 180) -> dict[str, Any]:
        def reached() -> dict[str, Any] | None:
            run = self.run(run_id)
            if run["status"] in statuses:
                return run
            if run["status"] in ("completed", "failed", "cancelled"):
                raise AssertionError(
                    f"ended as {run['status']} ({run['reason']}: {run['error_message']}), wanted {statuses}"
                )
            return None

        found: dict[str, Any] = wait_for(reached, within_s, lambda: f"run {run_id} is {statuses}: {self.run(run_id)}")
        return found

    def wait_items(self, run_id: str, at_least: int, within_s: float = 180) -> dict[str, Any]:
        def reached() -> dict[str, Any] | None:
            run = self.run(run_id)
            return run if run["progress"]["done"] >= at_least else None

        found: dict[str, Any] = wait_for(reached, within_s, lambda: f"run {run_id} has {at_least} items: {self.run(run_id)}")
        return found

    def items(self, run_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        after: str | None = None
        while True:
            params = {"limit": "500"} | ({"after": after} if after else {})
            answer = self.client.get(f"/api/container-runs/{run_id}/items", params=params)
            assert answer.status_code == 200, answer.text
            found += answer.json()["items"]
            after = answer.json()["next"]
            if after is None:
                return found

    def transitions(self, run_id: str) -> list[dict[str, Any]]:
        """The transition log of an ended run, from its stream."""
        answer = self.client.get(f"/api/container-runs/{run_id}/stream")
        lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
        events = [json.loads(line) for line in lines]
        return [event for event in events if event.get("type") == "transition"]

    # what an operator sees

    def containers(self, run_id: str | None = None, *, all_states: bool = False) -> list[str]:
        label = f"benchyard.run={run_id}" if run_id else f"benchyard.instance={self.instance}"
        flags = ["-a"] if all_states else []
        return self.docker("ps", *flags, "--filter", f"label={label}", "--format", "{{.Names}}").split()

    def container(self, run_id: str) -> str:
        names: list[str] = wait_for(lambda: self.containers(run_id), 180, f"a container of run {run_id}")
        return names[0]
