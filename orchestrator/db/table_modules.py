"""Every module that defines tables, for code that needs the whole schema; a test finds missing ones.

Listed by name, because feature packages are in a higher layer than this one.
"""

from __future__ import annotations

from importlib import import_module

from sqlalchemy import MetaData
from sqlmodel import SQLModel

TABLE_MODULES = (
    "orchestrator.accounts.tables",
    "orchestrator.alerts.tables",
    "orchestrator.archives.tables",
    "orchestrator.audit.tables",
    "orchestrator.batches.tables",
    "orchestrator.db.service_tables",
    "orchestrator.evals.tables",
    "orchestrator.fleet.tables",
    "orchestrator.gateway.ledger.tables",
    "orchestrator.gateway.provider_batches.tables",
    "orchestrator.grading.tables",
    "orchestrator.limits.tables",
    "orchestrator.models.tables",
    "orchestrator.prices.tables",
    "orchestrator.provider_keys.tables",
    "orchestrator.providers.tables",
    "orchestrator.retention.tables",
    "orchestrator.runs.tables",
    "orchestrator.runs.tables",
    "orchestrator.runs.warm_pool.tables",
    "orchestrator.schedules.tables",
    "orchestrator.sign_in.tables",
    "orchestrator.tokens.tables",
    "orchestrator.traces.tables",
)


def whole_schema() -> MetaData:
    for name in TABLE_MODULES:
        import_module(name)
    return SQLModel.metadata
