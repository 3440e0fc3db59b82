"""A run's task is one typed column, and runs that ask no model have none.

The lists in `container_runs.plan` become objects with their kind; what a job about evals works on moves there from
`eval_jobs.payload`. The catalogue loses the two models that only stood behind the foreign key of runs without a model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

from orchestrator.db.columns import UtcDateTime
from orchestrator.system.zstd import compress_quickly, decompress

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

STORED, COMMAND = "stored-answers", "no-model"
PROVIDER = "stored"
CHOICE = ("count", "first_date", "last_date", "selection", "flagged_excluded")
"""What stood beside a benchmark's problems for people."""
REFERRING = ("gateway_spending", "schedules", "schedule_panels", "schedule_fires", "webhooks")
"""Tables that could keep one of the two models: no run of theirs ever asked one."""
AT_ONCE = 200

models = sa.table(
    "models",
    sa.column("id", sa.Integer),
    *(sa.column(name, sa.String) for name in ("slug", "provider", "name", "display_name", "protocol")),
    sa.column("params", sa.JSON),
    sa.column("input_price", sa.Float),
    sa.column("output_price", sa.Float),
    *(sa.column(name, UtcDateTime()) for name in ("archived_at", "created_at", "updated_at")),
)
runs = sa.table(
    "container_runs",
    sa.column("id", sa.String),
    sa.column("kind", sa.String),
    sa.column("model_id", sa.Integer),
    sa.column("task", sa.LargeBinary),
)
jobs = sa.table("eval_jobs", sa.column("run_id", sa.String), sa.column("payload", sa.LargeBinary))
others = [sa.table(name, sa.column("model_id", sa.Integer)) for name in ("evals", "alerts", "deleted_runs")]


def upgrade() -> None:
    with op.batch_alter_table("container_runs") as table:
        table.alter_column("plan", new_column_name="task", existing_type=sa.LargeBinary(), existing_nullable=False)
        table.alter_column("model_id", existing_type=sa.Integer(), nullable=True)
    _make_nullable(True)
    bind = op.get_bind()
    _rewrite(_task)
    with op.batch_alter_table("eval_jobs") as table:
        table.drop_column("payload")
    placeholders = [
        row.id
        for row in bind.execute(
            sa.select(models.c.id).where(models.c.provider == PROVIDER, models.c.slug.in_([STORED, COMMAND]))
        )
    ]
    asking_none = runs.c.kind.in_(["command", "eval_execute"])
    bind.execute(sa.update(runs).where(runs.c.model_id.in_(placeholders) | asking_none).values(model_id=None))
    for other in others:
        bind.execute(sa.update(other).where(other.c.model_id.in_(placeholders)).values(model_id=None))
    kept = [
        sa.exists(sa.select(sa.literal(1)).select_from(table).where(table.c.model_id == models.c.id))
        for table in (sa.table(name, sa.column("model_id", sa.Integer)) for name in REFERRING)
    ]
    bind.execute(sa.delete(models).where(models.c.id.in_(placeholders), ~sa.or_(*kept)))


def downgrade() -> None:
    bind = op.get_bind()
    for slug, kinds in ((COMMAND, ["command"]), (STORED, ["grade", "eval_generate", "eval_execute"])):
        nameless = sa.select(sa.func.count()).select_from(runs).where(runs.c.model_id.is_(None), runs.c.kind.in_(kinds))
        if bind.execute(nameless).scalar_one():
            bind.execute(
                sa.update(runs).where(runs.c.model_id.is_(None), runs.c.kind.in_(kinds)).values(model_id=_placeholder(slug))
            )
    for other in others:
        if bind.execute(sa.select(sa.func.count()).select_from(other).where(other.c.model_id.is_(None))).scalar_one():
            bind.execute(sa.update(other).where(other.c.model_id.is_(None)).values(model_id=_placeholder(STORED)))
    op.add_column("eval_jobs", sa.Column("payload", sa.LargeBinary(), nullable=False, server_default=sa.text("''")))
    _rewrite(_plan)
    with op.batch_alter_table("eval_jobs") as table:
        table.alter_column("payload", existing_type=sa.LargeBinary(), server_default=None)
    _make_nullable(False)
    with op.batch_alter_table("container_runs") as table:
        table.alter_column("task", new_column_name="plan", existing_type=sa.LargeBinary(), existing_nullable=False)
        table.alter_column("model_id", existing_type=sa.Integer(), nullable=False)


def _make_nullable(nullable: bool) -> None:
    """The other references to models. SQLite makes the table anew, which a view on it does not survive."""
    bind = op.get_bind()
    view = None
    if bind.dialect.name == "sqlite":
        view = bind.execute(sa.text("SELECT sql FROM sqlite_master WHERE name = 'eval_verdicts'")).scalar_one()
        op.execute("DROP VIEW eval_verdicts")
    for name in ("evals", "alerts", "deleted_runs"):
        with op.batch_alter_table(name) as table:
            table.alter_column("model_id", existing_type=sa.Integer(), nullable=nullable)
    if view is not None:
        op.execute(view)


def _rewrite(change: Callable[[str, str, Any], Any]) -> None:
    bind = op.get_bind()
    statement = sa.update(runs).where(runs.c.id == sa.bindparam("of_run")).values(task=sa.bindparam("new_task"))
    for rows in _parts(bind):
        new = [{"of_run": row.id, "new_task": _packed(change(row.id, row.kind, _unpacked(row.task)))} for row in rows]
        bind.execute(statement, new)


def _parts(bind: sa.Connection) -> Iterator[list[Any]]:
    last = ""
    query = sa.select(runs.c.id, runs.c.kind, runs.c.task).order_by(runs.c.id).limit(AT_ONCE)
    while rows := list(bind.execute(query.where(runs.c.id > last))):
        yield rows
        last = rows[-1].id


def _task(run_id: str, kind: str, plan: list[dict[str, Any]]) -> dict[str, Any]:
    if kind in ("eval_generate", "eval_execute"):
        packed = op.get_bind().execute(sa.select(jobs.c.payload).where(jobs.c.run_id == run_id)).scalar()
        empty: dict[str, Any] = {"traces": []} if kind == "eval_execute" else {"name": "", "examples": []}
        return {"kind": kind, **empty, **(_unpacked(packed) or {})}
    task: dict[str, Any] = {"kind": kind, "benchmarks": []}
    for part in plan:
        spec = {name: value for name, value in part.items() if name not in (*CHOICE, "command")}
        choice = {name: part[name] for name in CHOICE if name in part} or None
        task["benchmarks"].append({**spec, "choice": choice})
        if "command" in part:
            task["command"] = part["command"]
    return task


def _plan(run_id: str, kind: str, task: dict[str, Any]) -> list[dict[str, Any]]:
    if kind in ("eval_generate", "eval_execute"):
        payload = {name: value for name, value in task.items() if name != "kind" and (name, value) != ("draft", None)}
        op.get_bind().execute(sa.update(jobs).where(jobs.c.run_id == run_id).values(payload=_packed(payload)))
        return []
    command = {"command": task["command"]} if "command" in task else {}
    return [
        {**command, **(part.get("choice") or {}), **{name: value for name, value in part.items() if name != "choice"}}
        for part in task["benchmarks"]
    ]


def _placeholder(slug: str) -> int:
    bind, now = op.get_bind(), datetime.now(UTC)
    model_id = bind.execute(sa.select(models.c.id).where(models.c.slug == slug)).scalar()
    if model_id is None:
        values = {"slug": slug, "provider": PROVIDER, "name": slug, "display_name": slug, "protocol": "openai_chat"}
        dates = {"archived_at": now, "created_at": now, "updated_at": now}
        bind.execute(sa.insert(models).values(**values, **dates, params={}, input_price=0.0, output_price=0.0))
        model_id = bind.execute(sa.select(models.c.id).where(models.c.slug == slug)).scalar_one()
    return int(model_id)


def _packed(value: Any) -> bytes:
    return compress_quickly(json.dumps(value).encode())


def _unpacked(packed: bytes | None) -> Any:
    return json.loads(decompress(packed)) if packed else []
