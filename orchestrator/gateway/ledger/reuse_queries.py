"""Statements on answers that another run of the same workspace has bought: which may be given to this run, once."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, case
from sqlalchemy import select as sa_select

from orchestrator.gateway.ledger.tables import GatewayCall
from orchestrator.runs.tables import ContainerRun

BOUGHT = "bought"

_CALLS: Any = GatewayCall.__table__  # type: ignore[attr-defined]
_KEPT = _CALLS.alias("kept")
_OWN: Any = ContainerRun.__table__.alias("own")  # type: ignore[attr-defined]
_OTHER: Any = ContainerRun.__table__.alias("other")  # type: ignore[attr-defined]
_USED = _CALLS.alias("used")
_FIND = (
    sa_select(_KEPT.c.run_id, _KEPT.c.call_key, _KEPT.c.answer)
    .where(
        _KEPT.c.question_key == bindparam("question"),
        _KEPT.c.state == "settled",
        _KEPT.c.source == BOUGHT,
        _KEPT.c.settled_at >= bindparam("since"),
        _KEPT.c.run_id != bindparam("of_run"),
        sa_select(_OTHER.c.id)
        .where(_OTHER.c.id == _KEPT.c.run_id, _OWN.c.id == bindparam("of_run"), _OTHER.c.workspace_id == _OWN.c.workspace_id)
        .exists(),
        ~sa_select(_USED.c.call_key)
        .where(
            _USED.c.run_id == bindparam("of_run"),
            _USED.c.from_run == _KEPT.c.run_id,
            _USED.c.from_key == _KEPT.c.call_key,
        )
        .exists(),
    )
    .order_by(
        case((_KEPT.c.call_key == bindparam("of_key"), 0), else_=1), _KEPT.c.settled_at, _KEPT.c.run_id, _KEPT.c.call_key
    )
    .limit(1)
)


def find(connection: Connection, run_id: str, call_key: str, question_key: str, since: datetime) -> Any:
    """An answer to the same question that another run of the workspace bought since then and this run has not been given
    yet, or None: the one to the same sample of the same problem if there is one, else the oldest."""
    values = {"of_run": run_id, "of_key": call_key, "question": question_key, "since": since}
    return connection.execute(_FIND, values).first()
