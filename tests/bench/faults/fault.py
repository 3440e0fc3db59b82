"""What a fault is to the harness: its name, what its service needs, and the function that carries it out once."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from tests.bench.faults.scene import Opening, Scene, open_scene

SQLITE, POSTGRESQL = "sqlite", "postgresql"
BOTH = (SQLITE, POSTGRESQL)
QUICK: Mapping[str, object] = {
    "lease_s": 30,
    "suspect_s": 30,
    "start_timeout_s": 30,
    "request_timeout_s": 30,
    "max_instances": 8,
}
"""Leases are those of a real installation: on a busy machine shorter ones cost attempts."""


@dataclass(frozen=True)
class Fault:
    """`carry_out` submits runs through the scene, does the harm, and returns the seconds until the state was right again
    (None where nothing has to recover). It raises AssertionError for whatever it sees going wrong. The harness then waits
    until the scene's runs have ended and checks all invariants."""

    code: str
    """"F9"."""
    name: str
    """Unique among the faults of the code: "engine killed -9"."""
    settle_s: float
    """I4: it must be right again within this time, including what was shortened."""
    carry_out: Callable[[Scene, random.Random], float | None]
    alone: bool = False
    """It needs the service to itself: one repeat at a time."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Of the service, on top of `QUICK`."""
    databases: tuple[str, ...] = BOTH
    shortened: str = ""
    """What is shorter than in FAULTS.md, for the table."""
    open: Callable[[Opening], AbstractContextManager[Scene]] = open_scene
    """For a fault whose service needs a database or an engine of its own."""
    ends_within_s: float = 60
    """How long its runs may take until they have ended (times BUSY of tests/faults/service.py)."""
    needs: Callable[[], str | None] = lambda: None
    """Why it cannot be carried out here, if so: a sentence for the table."""

    @property
    def key(self) -> str:
        return f"{self.code} {self.name}"

    def all_settings(self) -> dict[str, Any]:
        return {**QUICK, **self.settings}
