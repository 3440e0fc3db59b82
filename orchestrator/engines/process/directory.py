"""The directory of one "container" of the process engine, and what its files say about the program.

The directory's name is the container's name, and creating it is the lock: it appears complete, by one rename. `meta.json`
says whose it is; the supervisor writes `running.json` and `exit.json`. The boot line is in none of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orchestrator.engines.engine import (
    LABEL_ATTEMPT,
    LABEL_INSTANCE_TYPE,
    LABEL_RUN,
    ContainerFacts,
    ContainerState,
    ContainerStats,
)
from orchestrator.engines.process.supervisor import LINUX, birth_of, descendants, memory_of, write

KILLED = 137


@dataclass(frozen=True)
class ProcessBox:
    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @classmethod
    def make(cls, path: Path, meta: dict[str, Any], order: dict[str, Any]) -> ProcessBox | None:
        """None if the name is taken."""
        draft = path.with_name(f".new-{secrets.token_hex(8)}")
        (draft / "work").mkdir(parents=True, mode=0o700)
        try:
            for name, value in (("meta.json", meta), ("order.json", order)):
                (draft / name).write_text(json.dumps(value), encoding="utf-8")
            os.rename(draft, path)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            if path.exists():
                return None
            raise
        return cls(path)

    def meta(self) -> dict[str, Any] | None:
        """None if there is no such container."""
        return self._read("meta.json")

    def labels(self) -> dict[str, str]:
        return dict((self.meta() or {}).get("labels", {}))

    def facts(self) -> ContainerFacts | None:
        ended, running, meta = self._read("exit.json"), self._read("running.json"), self.meta()
        if meta is None:
            return None
        if ended is None and running is not None and not (_is_living(running, "keeper") or _is_living(running, "child")):
            ended = self._ended_unseen()
        labels = meta["labels"]
        attempt = labels.get(LABEL_ATTEMPT)
        return ContainerFacts(
            name=self.name,
            container_id=meta["id"],
            state=_state(ended, running),
            run_id=labels.get(LABEL_RUN),
            attempt=int(attempt) if attempt else None,
            instance_type=labels.get(LABEL_INSTANCE_TYPE),
            created_at=_time(meta["created_at"]),
            started_at=_time(running["started_at"]) if running else None,
            finished_at=None if ended is None else _time(ended["finished_at"]),
            exit_code=None if ended is None else ended["exit_code"],
            oom_killed=bool(ended and ended["oom_killed"]),
        )

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to the program, or SIGKILL to its whole process group. False if it is not alive."""
        running = self._read("running.json")
        if running is None or not _is_living(running, "child"):
            return False
        with contextlib.suppress(ProcessLookupError):
            if number is signal.SIGKILL:
                os.killpg(running["child"], number)
            else:
                os.kill(running["child"], number)
        return True

    def wait_started(self, seconds: float) -> None:
        """Wait while somebody else is starting it."""
        end = time.monotonic() + seconds
        while self._read("running.json") is None and time.monotonic() < end:
            time.sleep(0.02)

    def wait(self, seconds: float) -> bool:
        """Returns whether it ended within that time."""
        end = time.monotonic() + seconds
        while True:
            facts = self.facts()
            if facts is None or facts.state in (ContainerState.EXITED, ContainerState.CREATED):
                return True
            if time.monotonic() >= end:
                return False
            time.sleep(0.02)

    def stats(self, memory_limit: int) -> ContainerStats | None:
        running = self._read("running.json")
        if not LINUX or running is None or not _is_living(running, "child"):
            return None
        pids = [running["child"], *descendants(running["child"])]
        return ContainerStats(
            cpu_s=sum(_cpu_s(pid) for pid in pids),
            memory_bytes=memory_of(pids),
            memory_limit_bytes=memory_limit,
            pids=len(pids),
        )

    def log(self, tail_bytes: int) -> bytes:
        text = b""
        for name in ("log.1", "log"):
            with contextlib.suppress(OSError):
                text += (self.path / name).read_bytes()
        return text[-tail_bytes:] if tail_bytes > 0 else b""

    def remove(self) -> None:
        gone = self.path.with_name(f".gone-{secrets.token_hex(8)}")
        with contextlib.suppress(FileNotFoundError):
            os.rename(self.path, gone)  # frees the name at once
        shutil.rmtree(gone, ignore_errors=True)

    def _ended_unseen(self) -> dict[str, Any]:
        """Supervisor and program are gone: it ended between two checks, or the supervisor was killed and the exit code is
        unknown."""
        if (ended := self._read("exit.json")) is not None:
            return ended
        ended = {"exit_code": KILLED, "oom_killed": False, "finished_at": time.time()}
        with contextlib.suppress(OSError):
            write(str(self.path / "exit.json"), ended)
        return ended

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            value = json.loads((self.path / name).read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        return value if isinstance(value, dict) else None


def _is_living(running: dict[str, Any], who: str) -> bool:
    """`who` is `keeper` (the supervisor) or `child`. A pid that another process has taken since does not count."""
    birth = running[f"{who}_birth"]
    return birth is not None and birth_of(running[who]) == birth


def _state(ended: dict[str, Any] | None, running: dict[str, Any] | None) -> ContainerState:
    if ended is not None:
        return ContainerState.EXITED
    if running is None:
        return ContainerState.CREATED
    return ContainerState.PAUSED if _stopped(running["child"]) else ContainerState.RUNNING


def _fields(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return []


def _stopped(pid: int) -> bool:
    return _fields(pid)[:1] in (["T"], ["t"])


def _cpu_s(pid: int) -> float:
    """CPU time of the process and of its children that ended."""
    fields = _fields(pid)
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
