"""View models: what a page shows, computed from rows. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.db.tables import ContainerRun
from orchestrator.runs.lifecycle import TERMINAL
from orchestrator.runs.reasons import sentence


@dataclass(frozen=True)
class RunLine:
    id: str
    model: str
    benchmarks: str
    status: str
    stage: str
    done: int
    total: int
    percent: int
    score: str
    interval: str
    note: str
    created: str
    live: bool


def run_line(run: ContainerRun, model: str) -> RunLine:
    score = run.score or {}
    estimate = score.get("estimate")
    note = run.waiting_for or (run.error_message or sentence(run.reason) or "" if run.reason else "")
    return RunLine(
        id=run.id,
        model=model,
        benchmarks=", ".join(run.benchmarks),
        status=run.status,
        stage=run.stage or "",
        done=run.items_done,
        total=run.items_total,
        percent=round(100 * run.items_done / run.items_total) if run.items_total else 0,
        score="" if estimate is None else f"{100 * estimate:.1f} %",
        interval="" if estimate is None else f"{100 * score['low']:.1f} – {100 * score['high']:.1f} %",
        note=note,
        created=run.created_at.strftime("%Y-%m-%d %H:%M:%S"),
        live=run.status not in TERMINAL,
    )
