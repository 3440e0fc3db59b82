"""What warm runners use while they stand ready; dead letters that were dismissed or retried; commands have no score."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

import orchestrator.db.columns

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "idle_usage",
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("instance_type", sa.String(length=100), nullable=False),
        sa.Column("ready_s", sa.Float(), nullable=False),
        sa.Column("vcpu_s", sa.Float(), nullable=False),
        sa.Column("gib_s", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("day", "instance_type"),
    )
    op.add_column("warm_runners", sa.Column("cpu_s", sa.Float(), nullable=False, server_default="0"))
    op.add_column("warm_runners", sa.Column("memory_bytes", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("container_runs", sa.Column("dismissed_at", orchestrator.db.columns.UtcDateTime(), nullable=True))
    op.add_column("container_runs", sa.Column("succeeded_by", sa.String(length=36), nullable=True))
    runs = sa.table(
        "container_runs",
        sa.column("id", sa.String),
        sa.column("kind", sa.String),
        sa.column("status", sa.String),
        sa.column("trigger_type", sa.String),
        sa.column("retry_of", sa.String),
        sa.column("succeeded_by", sa.String),
        sa.column("score"),
    )
    op.execute(runs.update().where(runs.c.kind == "command").values(score=sa.null()))
    _mark_retried(runs)


def _mark_retried(runs: sa.TableClause) -> None:
    """Every run that a completed one retried, directly or through other retries."""
    connection = op.get_bind()
    retries = runs.c.trigger_type == "retry"
    rows = connection.execute(sa.select(runs.c.id, runs.c.status, runs.c.retry_of).where(retries)).all()
    retried = {row.id: row.retry_of for row in rows}
    for row in rows:
        earlier = row.retry_of if row.status == "completed" else None
        while earlier is not None:
            connection.execute(runs.update().where(runs.c.id == earlier).values(succeeded_by=row.id))
            earlier = retried.get(earlier)


def downgrade() -> None:
    with op.batch_alter_table("container_runs") as table:
        table.drop_column("succeeded_by")
        table.drop_column("dismissed_at")
    with op.batch_alter_table("warm_runners") as table:
        table.drop_column("memory_bytes")
        table.drop_column("cpu_s")
    op.drop_table("idle_usage")
