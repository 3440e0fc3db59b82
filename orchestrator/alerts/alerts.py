"""The kinds of alerts, each with its title."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from orchestrator.alerts.tables import Alert
from orchestrator.db.workspaces import DEFAULT_WORKSPACE
from orchestrator.schedules.tables import Schedule


class AlertKind(StrEnum):
    WORSE = "drift.worse"  #: the series has evidence of a drop
    BETTER = "drift.better"  #: the series has evidence of a rise
    RUN_FAILED = "run.failed"  #: a scheduled run failed; or any run, for webhooks that ask for all
    MISSED = "schedule.missed"  #: instants passed without a run


def missed(schedule: Schedule, slug: str, instants: list[datetime], reason: str, now: datetime) -> Alert:
    first, last = instants[0], instants[-1]
    where = "" if schedule.workspace_id == DEFAULT_WORKSPACE else f"{schedule.workspace_id}_"
    many = f"{len(instants)} scheduled runs" if len(instants) > 1 else "1 scheduled run"
    return Alert(
        uid=f"msg_missed_{where}{schedule.model_id}_{first:%Y%m%dT%H%M%S}",
        model_id=schedule.model_id,
        kind=AlertKind.MISSED,
        title=f"{slug}: {many} missed. {reason}",
        data={"model": slug, "instants": len(instants), "first": first.isoformat(), "last": last.isoformat()},
        at=now,
    )


def run_failed(
    model_id: int, slug: str, run_id: str, status: str, why: str, now: datetime, *, measured: bool = True
) -> Alert:
    """`measured`: some items of the run count, so it has a score."""
    # The message of a run without results already starts with this.
    nothing = "" if measured or why.startswith("nothing was measured") else " Nothing was measured."
    return Alert(
        uid=f"msg_failed_{run_id}",
        model_id=model_id,
        kind=AlertKind.RUN_FAILED,
        run_id=run_id,
        title=f"{slug}: the scheduled run ended {status}.{nothing} {_capital(why)}".rstrip(),
        data={"model": slug, "run_id": run_id, "status": status, "why": why, "measured": measured},
        at=now,
    )


def drift(model_id: int, slug: str, run_id: str, comparison: dict[str, Any], now: datetime) -> Alert:
    """From the stored form of a comparison whose verdict is worse or better."""
    worse = comparison["verdict"] == "worse"
    return Alert(
        uid=f"msg_drift_{run_id}",
        model_id=model_id,
        kind=AlertKind.WORSE if worse else AlertKind.BETTER,
        run_id=run_id,
        title=f"{slug}: {comparison['sentence']}",
        data={"model": slug, "run_id": run_id, **{key: comparison[key] for key in _FIELDS}},
        at=now,
    )


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


_FIELDS = ("verdict", "effect", "low", "high", "p_value", "evidence", "needed", "window", "flipped")
