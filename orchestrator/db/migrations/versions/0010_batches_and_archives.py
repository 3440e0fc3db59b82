"""Batches of runs, and the archives of ended ones. Runs that ended before have none; theirs is made when it is asked for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from orchestrator.db.columns import UtcDateTime

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "batches",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("external_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("created_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("end_asked_at", UtcDateTime(timezone=True), nullable=True),
        sa.Column("end_mode", sa.String(length=10), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("external_id"),
    )
    op.create_table(
        "archives",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=True),
        sa.Column("place", sa.String(length=10), nullable=True),
        sa.Column("size_bytes", sa.BigInteger(), nullable=True),
        sa.Column("sha256", sa.String(length=64), nullable=True),
        sa.Column("grading_digest", sa.String(length=64), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("not_before", UtcDateTime(timezone=True), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("stored_at", UtcDateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["container_runs.id"]),
        sa.PrimaryKeyConstraint("run_id"),
    )
    op.create_index("ix_archives_queue", "archives", ["state", "not_before"])
    op.create_index("ix_archives_stored", "archives", ["stored_at"])
    op.add_column("container_runs", sa.Column("batch_id", sa.String(length=36), nullable=True))
    op.add_column("container_runs", sa.Column("batch_slot", sa.Integer(), nullable=True))
    op.create_index("ix_runs_batch", "container_runs", ["batch_id", "batch_slot"])
    op.add_column("item_results", sa.Column("answer_digest", sa.String(length=64), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("item_results") as table:
        table.drop_column("answer_digest")
    op.drop_index("ix_runs_batch", "container_runs")
    with op.batch_alter_table("container_runs") as table:
        table.drop_column("batch_slot")
        table.drop_column("batch_id")
    op.drop_table("archives")
    op.drop_table("batches")
