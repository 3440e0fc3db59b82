"""Figures of this moment for Prometheus, read anew at each scrape: the queue, and how good evals are."""

from __future__ import annotations

from datetime import datetime

from prometheus_client import CollectorRegistry, Gauge
from sqlmodel import Session

from orchestrator.metrics import queries as metric_queries
from orchestrator.metrics.labels import MOST_CHARACTERS
from orchestrator.metrics.run_metrics import MOST_EVALS

STATES = ("waiting", "put_off", "starting", "running")


def read_now(session: Session, registry: CollectorRegistry, now: datetime, *, with_names: bool) -> None:
    """Within the caller's session, which decides whose runs and evals these are; without names, no evals."""
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
    seen: set[tuple[str, str]] = set()
    for set_name, row in metric_queries.evals(session, MOST_EVALS):
        labels = set_name[:MOST_CHARACTERS], row.name[:MOST_CHARACTERS]
        if labels in seen:  # an older version
            continue
        seen.add(labels)
        if row.held_out_n:
            accuracy.labels(*labels).set(row.held_out_right / row.held_out_n)
        verdicts.labels(*labels).set(row.execution_count)
        failures.labels(*labels).set(row.failure_count)
        contradictions.labels(*labels).set(row.contradiction_count)
