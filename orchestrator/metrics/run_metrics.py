"""Counts runs as they end, for Prometheus. Counters start at zero with the process, as Prometheus expects.

Runs are read from the database, so every orchestrator counts every run once, whichever of them ended it. The figures cover
all workspaces and must be shown only to callers who may see them.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.db.workspaces import acting_as
from orchestrator.metrics import queries as metric_queries
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs.lifecycle import TERMINAL, Status
from orchestrator.runs.reports.model_names import model_name
from orchestrator.runs.reports.scores import scores_by_benchmark
from orchestrator.runs.tables import ContainerRun
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import uuid7

OVERLAP = timedelta(minutes=10)
"""The maximum clock difference of orchestrators: runs whose ids are older by at most this are not missed."""
SEEN_AT_FIRST = 500
"""Number of runs whose scores are read when the process starts."""
MOST_MODELS, MOST_BENCHMARKS, MOST_PROVIDERS, MOST_EVALS = 100, 50, 30, 100
NO_MODEL = "none"
DURATIONS = (1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600)
WAITS = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600)


class RunMetrics:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._lock = asyncio.Lock()
        self._open: set[str] = set()
        self._counted: set[str] = set()
        self._looked_at = clock.now()
        self._scored: dict[tuple[str, str], str] = {}
        self._models, self._benchmarks = BoundedLabels(MOST_MODELS), BoundedLabels(MOST_BENCHMARKS)
        self._providers = BoundedLabels(MOST_PROVIDERS)
        self.registry = CollectorRegistry()
        into = self.registry
        which = ["model", "benchmark"]
        name = "benchyard_run_duration_seconds"
        self._duration = Histogram(name, "From start to end", ["kind", "status"], buckets=DURATIONS, registry=into)
        self._wait = Histogram(
            "benchyard_run_queue_seconds", "Until the first attempt", ["kind"], buckets=WAITS, registry=into
        )
        name = "benchyard_attempt_start_seconds"
        self._start = Histogram(name, "From dispatch to the runner's claim", ["warm"], buckets=WAITS, registry=into)
        self._ended = Counter("benchyard_runs_ended", "Runs that ended", ["kind", "status", "reason"], registry=into)
        self._attempts = Counter("benchyard_attempts_ended", "Attempts of ended runs", ["reason"], registry=into)
        self._items = Counter("benchyard_items", "Items of ended runs by outcome", [*which, "outcome"], registry=into)
        self._tokens = Counter("benchyard_tokens", "Tokens of ended runs", [*which, "direction"], registry=into)
        self._cost = Counter("benchyard_cost_usd", "Known cost of ended runs in US dollars", which, registry=into)
        self._unpriced = Counter("benchyard_unpriced_calls", "Calls of unknown cost", ["model"], registry=into)
        self._calls = Counter("benchyard_provider_calls", "Calls bought by ended runs", ["provider", "state"], registry=into)
        self._errors = Counter(
            "benchyard_provider_errors", "Items lost to the provider", ["provider", "model"], registry=into
        )
        self._score = Gauge("benchyard_score", "Score of the newest completed run, 0 to 1", which, registry=into)

    async def begin(self) -> None:
        """Loads the scores of the newest runs. Runs that ended earlier are not counted."""
        lowest = self._lowest(self._clock.now())

        def read(session: Session) -> tuple[set[str], set[str]]:
            still_open = set(metric_queries.open_ids(session))
            recent = {run.id for run in metric_queries.since(session, lowest, ())}
            rows = metric_queries.newest_scored(session, SEEN_AT_FIRST)
            models = model_queries.by_ids(session, (run.model_id for run in rows))
            for run in rows:
                self._show_scores(run, models.get(run.model_id))
            return still_open, recent - still_open

        with acting_as(None):
            self._open, self._counted = await self._db.read(read)

    async def catch_up(self) -> None:
        """Counts the runs that ended since the last call."""
        async with self._lock:
            now = self._clock.now()
            lowest = self._lowest(self._looked_at)
            with acting_as(None):
                await self._db.read(lambda session: self._look(session, lowest))
            self._looked_at = now
            oldest = self._lowest(now)
            self._counted = {run_id for run_id in self._counted if run_id >= oldest}

    def _lowest(self, moment: datetime) -> str:
        return uuid7(moment - OVERLAP, bytes(10))

    def _look(self, session: Session, lowest: str) -> None:
        rows = metric_queries.since(session, lowest, self._open)
        ended = [run for run in rows if run.status in TERMINAL and run.id not in self._counted]
        models = model_queries.by_ids(session, (run.model_id for run in ended))
        for run in sorted(ended, key=lambda run: run.id):
            self._count(session, run, models.get(run.model_id))
            self._counted.add(run.id)
        self._open = {run.id for run in rows if run.status not in TERMINAL}

    def _count(self, session: Session, run: ContainerRun, model: LlmModel | None) -> None:
        slug = model_name(run.kind, model.slug if model else None)
        name = self._models.of(slug or NO_MODEL)
        self._ended.labels(run.kind, run.status, run.reason or "").inc()
        if run.started_at is not None and run.completed_at is not None:
            self._duration.labels(run.kind, run.status).observe((run.completed_at - run.started_at).total_seconds())
        for attempt in metric_queries.attempts(session, run.id):
            if attempt.number == 1:
                self._wait.labels(run.kind).observe((attempt.dispatched_at - run.created_at).total_seconds())
            if attempt.claimed_at is not None:
                warm = "true" if attempt.facts.get("stood_ready") else "false"
                self._start.labels(warm).observe((attempt.claimed_at - attempt.dispatched_at).total_seconds())
            self._attempts.labels(attempt.reason or "").inc()
        provider = self._providers.of(model.provider if model else NO_MODEL)
        for benchmark, outcome, count, input_tokens, output_tokens in metric_queries.outcomes(session, run):
            which = name, self._benchmarks.of(benchmark)
            self._items.labels(*which, outcome).inc(count)
            for direction, tokens in (("input", input_tokens), ("output", output_tokens)):
                if tokens:
                    self._tokens.labels(*which, direction).inc(tokens)
            if outcome == "provider_error":
                self._errors.labels(provider, name).inc(count)
        for supplier, state, count in metric_queries.calls(session, run):
            self._calls.labels(self._providers.of(supplier), state).inc(count)
        if slug is not None:
            of = self._benchmarks.of(run.benchmarks[0]) if len(run.benchmarks) == 1 else "several"
            self._cost.labels(name, of).inc(max(0.0, run.cost_usd))
            if run.unpriced_calls:
                self._unpriced.labels(name).inc(run.unpriced_calls)
        self._show_scores(run, model)

    def _show_scores(self, run: ContainerRun, model: LlmModel | None) -> None:
        """Shows the newest run of each model and benchmark, whatever the order of reading."""
        if run.status != Status.COMPLETED or run.kind not in ("benchmark", "harness") or model is None:
            return
        for benchmark, score in scores_by_benchmark(run.score, run.benchmarks).items():
            which = self._models.of(model.slug), self._benchmarks.of(benchmark)
            if score.get("estimate") is not None and self._scored.get(which, "") < run.id:
                self._scored[which] = run.id
                self._score.labels(*which).set(score["estimate"])


OTHER = "other"
MOST_CHARACTERS = 80


class BoundedLabels:
    """The first `most` values keep their names; all later ones become `other`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._names: set[str] = set()

    def of(self, value: str) -> str:
        name = value[:MOST_CHARACTERS]
        if name in self._names:
            return name
        if len(self._names) >= self._most:
            return OTHER
        self._names.add(name)
        return name


STATES = ("waiting", "put_off", "starting", "running")


def read_now(session: Session, registry: CollectorRegistry, now: datetime, *, with_names: bool) -> None:
    """Uses the caller's session, which determines the visible runs and evals; without names, evals are left out."""
    length = Gauge("benchyard_queue_length", "Runs that have not ended", ["state"], registry=registry)
    counts = metric_queries.queue(session, now)
    for state in STATES:
        length.labels(state).set(counts.get(state, 0))
    if not with_names:
        return
    which = ["eval_set", "eval"]
    accuracy = Gauge("benchyard_eval_held_out_accuracy", "Share right of traces held out", which, registry=registry)
    verdicts = Gauge("benchyard_eval_verdicts", "Traces judged by the newest version", which, registry=registry)
    failures = Gauge("benchyard_eval_failures", "Traces without a verdict", which, registry=registry)
    contradictions = Gauge("benchyard_eval_contradictions", "Verdicts that contradict people", which, registry=registry)
    newest: set[tuple[str, str]] = set()
    for set_name, row in metric_queries.evals(session, MOST_EVALS):
        labels = set_name[:MOST_CHARACTERS], row.name[:MOST_CHARACTERS]
        if labels in newest:  # an older version
            continue
        newest.add(labels)
        if row.held_out_n:
            accuracy.labels(*labels).set(row.held_out_right / row.held_out_n)
        verdicts.labels(*labels).set(row.execution_count)
        failures.labels(*labels).set(row.failure_count)
        contradictions.labels(*labels).set(row.contradiction_count)
