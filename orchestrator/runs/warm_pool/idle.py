"""What runners use while they stand ready, apart from any run: from what each reports with its requests for work."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session

from orchestrator.runs.reports.machine_cost import GIB
from orchestrator.runs.warm_pool import queries as pool_queries
from orchestrator.runs.warm_pool.tables import WarmRunner
from runner.contract.run_spec import IdleReading

LONGEST_GAP_S = 120.0
"""A runner that stands ready asks every 20 seconds; time beyond this was spent without it."""


def count(session: Session, row: WarmRunner, now: datetime, reading: IdleReading | None = None) -> None:
    """Count the time since the row was last counted. Without a reading, it holds what it held then."""
    seconds = min(max(0.0, (now - (row.seen_at or row.created_at)).total_seconds()), LONGEST_GAP_S)
    before, vcpu_s = row.memory_bytes, 0.0
    if reading is not None:
        vcpu_s = max(0.0, reading.cpu_s - row.cpu_s)
        row.cpu_s, row.memory_bytes = max(row.cpu_s, reading.cpu_s), reading.memory_bytes
    gib_s = seconds * (before + row.memory_bytes) / 2 / GIB
    if seconds or vcpu_s:
        pool_queries.add_idle(session, now, row.instance_type, ready_s=seconds, vcpu_s=vcpu_s, gib_s=gib_s)
