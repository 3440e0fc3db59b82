"""The `benchyard` command with a hook that exists only here: it kills its own process (SIGKILL) at a chosen step.

    CRASH_PLAN=plan.json python -m tests.faults.crash_launcher serve

A step is a commit that stores something, or a request that changes something at the Docker engine. Once the plan's file is
there (`{"at": 5, "after": false}`), steps are counted; each is written to `plan.json.steps` before it is taken. A read is no
step: what dies beside it leaves the same database and the same engine as what dies after the step before.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = ("-m", "tests.faults.crash_launcher")


class Plan:
    """As the test sees it, and as the process that is to die sees it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._steps = file.with_name(file.name + ".steps")
        self._lock = threading.Lock()
        self._count = self._armed = 0

    @property
    def environment(self) -> dict[str, str]:
        return {"CRASH_PLAN": str(self.file)}

    def arm(self, at: int | None, *, after: bool = False) -> None:
        """Count from now on, and die at that step."""
        self._steps.unlink(missing_ok=True)
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps({"at": at, "after": after, "armed": time.monotonic_ns()}))
        part.replace(self.file)

    def disarm(self) -> None:
        self.file.unlink(missing_ok=True)

    def steps(self) -> list[str]:
        """What was taken since it was armed."""
        return self._steps.read_text().splitlines() if self._steps.exists() else []

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        try:
            plan = json.loads(self.file.read_text())
        except FileNotFoundError:
            yield
            return
        with self._lock:
            if plan["armed"] != self._armed:
                self._armed, self._count = plan["armed"], 0
            self._count += 1
            mine = self._count == plan["at"]
            with self._steps.open("a") as steps:
                steps.write(name + "\n")
        if mine and not plan["after"]:
            _die()
        yield
        if mine:
            _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def install(plan: Plan) -> None:
    """Wrap what the drivers do, below everything of ours."""
    import docker
    import psycopg

    class Connection(sqlite3.Connection):
        def commit(self) -> None:
            if not self.in_transaction:
                super().commit()
                return
            with plan.step("commit"):
                super().commit()

        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
            if sql != "COMMIT":
                return super().execute(sql, *arguments)
            with plan.step("commit"):
                return super().execute(sql)

    sqlite3.dbapi2.connect = functools.partial(sqlite3.connect, factory=Connection)  # type: ignore[attr-defined]
    _wrap(psycopg.Connection, "commit", plan, lambda *_: "commit")
    for name in ("_post", "_delete"):
        _wrap(docker.APIClient, name, plan, lambda _, url, name=name: f"{name[1:].upper()} {url.split('/', 4)[-1]}")


def _wrap(kind: Any, name: str, plan: Plan, words: Callable[..., str]) -> None:
    real = getattr(kind, name)

    @functools.wraps(real)
    def dying(self: Any, *arguments: Any, **named: Any) -> Any:
        with plan.step(words(self, *arguments[:1])):
            return real(self, *arguments, **named)

    setattr(kind, name, dying)


def main() -> None:
    install(Plan(Path(os.environ["CRASH_PLAN"])))
    from orchestrator.cli.entry import main as command

    command()


if __name__ == "__main__":
    main()
