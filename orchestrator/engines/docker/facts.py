"""Converts Docker's answers: inspect to `ContainerFacts`, counters to `ContainerStats`, info to `EngineInfo`.

Pure. Differences between engine versions and cgroup versions are handled here.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from orchestrator.engines.engine import (
    ENDED,
    LABEL_ATTEMPT,
    LABEL_INSTANCE_TYPE,
    LABEL_RUN,
    ContainerFacts,
    ContainerState,
    ContainerStats,
)

_STATES = {
    "created": ContainerState.CREATED,
    "running": ContainerState.RUNNING,
    "restarting": ContainerState.RUNNING,
    "paused": ContainerState.PAUSED,
    "exited": ContainerState.EXITED,
    "stopped": ContainerState.EXITED,
    "removing": ContainerState.DEAD,
    "dead": ContainerState.DEAD,
}


@dataclass(frozen=True)
class EngineHost:
    """What the engine reports about its machine."""

    version: str
    system: str
    cpus: int
    memory_bytes: int
    kernel: str = field(repr=False)
    rootless: bool = False

    @property
    def is_this_machine(self) -> bool:
        """Whether a process here has the runner network's address: false for Docker Desktop, rootless and remote engines."""
        return sys.platform == "linux" and self.kernel == platform.release() and not self.rootless


def read_container(described: Mapping[str, Any]) -> ContainerFacts:
    """From the output of inspect."""
    state = described["State"]
    status = _STATES.get(state["Status"], ContainerState.DEAD)
    labels = labels_in(described)
    attempt = labels.get(LABEL_ATTEMPT, "")
    ended = status in ENDED
    return ContainerFacts(
        name=described["Name"].removeprefix("/"),
        container_id=described["Id"],
        state=status,
        run_id=labels.get(LABEL_RUN),
        attempt=int(attempt) if attempt.isdecimal() else None,
        instance_type=labels.get(LABEL_INSTANCE_TYPE),
        created_at=read_time(described["Created"]) or datetime.fromtimestamp(0, UTC),
        started_at=read_time(state.get("StartedAt")),
        finished_at=read_time(state.get("FinishedAt")) if ended else None,
        exit_code=state.get("ExitCode") if ended else None,
        oom_killed=bool(state.get("OOMKilled")),
    )


def labels_in(described: Mapping[str, Any]) -> dict[str, str]:
    return dict((described.get("Config") or {}).get("Labels") or {})


def read_time(text: str | None) -> datetime | None:
    """Parses RFC 3339 with nanoseconds; Docker writes year 1 for "never"."""
    if not text or text.startswith("0001-"):
        return None
    micros = re.sub(r"(\.\d{1,6})\d*", r"\1", text)
    return datetime.fromisoformat(micros).astimezone(UTC)


def read_stats(counters: Mapping[str, Any]) -> ContainerStats | None:
    """None if the container is not running: the engine then returns zeros or nothing."""
    memory = counters.get("memory_stats") or {}
    cpu = counters.get("cpu_stats") or {}
    usage = (cpu.get("cpu_usage") or {}).get("total_usage")
    if not usage or "usage" not in memory:
        return None
    pages = memory.get("stats") or {}
    reclaimable = pages.get("total_inactive_file", pages.get("inactive_file", 0))  # cgroup v1, v2
    return ContainerStats(
        cpu_s=usage / 1e9,
        memory_bytes=max(0, memory["usage"] - reclaimable),
        memory_limit_bytes=memory.get("limit", 0),
        pids=(counters.get("pids_stats") or {}).get("current", 0),
        throttled_s=(cpu.get("throttling_data") or {}).get("throttled_time", 0) / 1e9,
    )


def isolation_sentence(described: Mapping[str, Any], reach: str) -> str:
    """`described` is the engine's info; `reach` says what runners can reach on the network."""
    options = " ".join(described.get("SecurityOptions") or [])
    runtime = described.get("DefaultRuntime") or "runc"
    kernel = "a kernel of their own (gVisor)" if runtime == "runsc" else "this machine's kernel"
    extra = [word for word, sign in (("rootless", "name=rootless"), ("user namespaces", "name=userns")) if sign in options]
    with_extra = f" with {' and '.join(extra)}" if extra else ""
    return f"Containers on {kernel}{with_extra}, read-only, three capabilities, no new privileges; {reach}."


def read_host(described: Mapping[str, Any]) -> EngineHost:
    """From the engine's info."""
    return EngineHost(
        version=str(described["ServerVersion"]),
        system=str(described.get("OperatingSystem") or "unknown"),
        cpus=int(described["NCPU"]),
        memory_bytes=int(described["MemTotal"]),
        kernel=str(described.get("KernelVersion") or ""),
        rootless=any("name=rootless" in str(each) for each in described.get("SecurityOptions") or []),
    )
