"""The page of one model: its figures, its last runs, schedule and alerts."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session

from orchestrator.alerts import queries as alert_queries
from orchestrator.alerts.tables import Alert
from orchestrator.dashboard.figures.figure import Figure
from orchestrator.gateway.ledger import report_queries as call_reports
from orchestrator.models.tables import LlmModel
from orchestrator.models.views import profile
from orchestrator.runs import item_queries
from orchestrator.runs.reports import queries as page_queries
from orchestrator.runs.reports.queries import RunOfModel
from orchestrator.runs.reports.scores import score_detail
from orchestrator.runs.views.run import Entries
from orchestrator.runs.views.series import Point
from orchestrator.schedules import queries as schedule_queries
from orchestrator.schedules.tables import Schedule

RUNS = 300
"""The newest runs that are looked at."""
SAMPLED_RUNS = 8
SAMPLED_VALUES = 4000
DAYS = 30
ALERTS = 5


@dataclass(frozen=True)
class Latest:
    """The newest score on a benchmark."""

    benchmark: str
    point: Point
    runs: int
    around_cut_off: dict[str, Any] | None


@dataclass(frozen=True)
class ModelPage:
    runs: list[RunOfModel]
    latest: list[Latest]
    figures: list[Figure]
    schedule: Schedule | None
    alerts: Sequence[Alert]
    spent_usd: float
    median_latency_s: float | None
    median_tokens: float | None
    cost_per_item: float | None


def runs_of(session: Session, model_id: int) -> list[RunOfModel]:
    """The newest runs, newest first."""
    return page_queries.of_model(session, model_id, limit=RUNS)


def model_page(session: Session, model: LlmModel, runs: list[RunOfModel], entries: Entries, now: datetime) -> ModelPage:
    model_id = model.id or 0
    points = profile.points_by_benchmark(runs)
    measured = [run for run in runs if run.status == "completed" and run.kind == "benchmark"]
    asked = [run.id for run in measured[:SAMPLED_RUNS]]
    seconds = page_queries.call_times(session, asked, limit=SAMPLED_VALUES)
    tokens = page_queries.output_tokens(session, asked, limit=SAMPLED_VALUES)
    mixed = measured[: profile.MIX_RUNS]
    days = call_reports.spending(session, since=(now - timedelta(days=DAYS - 1)).date().isoformat(), by_day=True)
    by_day = {row.day: row.settled_usd + row.lost_usd for row in days if row.model == model.slug}
    cut_off = model.training_cutoff.isoformat() if model.training_cutoff else None
    latest, of_main = [], None
    for name, own in points.items():
        around = None
        if of_main is None or cut_off:
            verdicts = [row for row in item_queries.both_verdicts(session, own[0].run.id) if row[0] == name]
            facts = {key[1]: entry for key, entry in entries.items() if key[0] == name}
            detail = score_detail(verdicts, lambda _, facts=facts: facts, cut_off).get(name, {})  # type: ignore[misc]
            around = detail.get("around_cut_off")
            if of_main is None:
                of_main = (verdicts, detail, own[0].run.id)
        latest.append(Latest(name, own[0], len(own), around))
    figures = [
        profile.history(points),
        profile.difficulty_profile(of_main[1].get("by_difficulty", {})) if of_main else None,
        profile.difficulty_by_month(of_main[0], entries, of_main[2]) if of_main else None,
        profile.outcome_mix(mixed, page_queries.outcomes_of_runs(session, [run.id for run in mixed])),
        profile.speed(seconds),
        profile.answer_lengths(tokens),
        profile.spend(by_day, now.date(), DAYS),
    ]
    priced = [run for run in measured if run.items_done and run.cost_usd and not run.unpriced_calls][:SAMPLED_RUNS]
    return ModelPage(
        runs,
        latest,
        [figure for figure in figures if figure is not None],
        schedule_queries.get(session, model_id),
        alert_queries.page(session, limit=ALERTS, model_id=model_id),
        sum(by_day.values()),
        statistics.median(seconds) if seconds else None,
        statistics.median(tokens) if tokens else None,
        sum(run.cost_usd for run in priced) / sum(run.items_done for run in priced) if priced else None,
    )
