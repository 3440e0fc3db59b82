"""Every module that defines tables. Whoever needs the whole schema loads them all; a test finds one that is missing here.

By name, because a feature's own folder stands above this package.
"""

from __future__ import annotations

from importlib import import_module

from sqlalchemy import MetaData
from sqlmodel import SQLModel

TABLE_MODULES = (
    "orchestrator.db.account_tables",
    "orchestrator.db.agent_tables",
    "orchestrator.db.audit_tables",
    "orchestrator.db.batch_tables",
    "orchestrator.db.call_tables",
    "orchestrator.db.eval_tables",
    "orchestrator.db.key_tables",
    "orchestrator.db.pool_tables",
    "orchestrator.db.schedule_tables",
    "orchestrator.db.tables",
    "orchestrator.db.token_tables",
    "orchestrator.retention.tables",
)


def whole_schema() -> MetaData:
    for name in TABLE_MODULES:
        import_module(name)
    return SQLModel.metadata
