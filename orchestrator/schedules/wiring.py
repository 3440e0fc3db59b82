"""Assembles the parts of schedules: a ticker for firing, judging and delivering."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from orchestrator.alerts.sending.deliveries import Deliveries
from orchestrator.alerts.sending.webhooks import WebhookSender
from orchestrator.datasets.catalogue import Catalogue
from orchestrator.db.session import Database
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.service import RunService
from orchestrator.schedules.drift.judge import Judge
from orchestrator.schedules.firing.launch import Launcher
from orchestrator.schedules.firing.rounds import Firing
from orchestrator.schedules.firing.ticker import Ticker
from orchestrator.schedules.service import ScheduleService
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock


@asynccontextmanager
async def open_schedules(
    db: Database,
    catalogue: Catalogue,
    settings: Settings,
    clock: Clock,
    leadership: Leadership,
    runs: RunService,
    *,
    engine_name: str,
    rng: random.Random,
    sender: WebhookSender,
    wake: Callable[[], None],
    quiet: bool = False,
) -> AsyncIterator[ScheduleService]:
    """Yields the service; the ticker runs while it is open. In a quiet installation (a copy of another one) there is no
    ticker: no schedule fires by itself, and nothing is judged or delivered."""
    launcher = Launcher(settings, catalogue, engine_name=engine_name)
    ticker = Ticker(
        {
            "firing": Firing(db, leadership, clock, launcher, wake=wake).round,
            "judging": Judge(db, leadership, clock).round,
            "delivering": Deliveries(db, leadership, clock, rng, sender).round,
        }
    )
    if not quiet:
        ticker.start()
    try:
        yield ScheduleService(db, catalogue, runs, clock, launcher, wake=wake)
    finally:
        await ticker.close()
