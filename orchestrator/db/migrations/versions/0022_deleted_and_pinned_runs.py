"""Runs that are pinned, and what is remembered of runs that were deleted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

import orchestrator.db.columns

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "pinned_runs",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("pinned_at", orchestrator.db.columns.UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["container_runs.id"]),
        sa.PrimaryKeyConstraint("run_id"),
    )
    op.create_table(
        "deleted_runs",
        sa.Column("workspace_id", sa.Integer(), server_default="1", nullable=False),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("batch_id", sa.String(length=36), nullable=True),
        sa.Column("scheduled", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("vcpu_s", sa.Float(), nullable=False),
        sa.Column("gib_s", sa.Float(), nullable=False),
        sa.Column("throttled_s", sa.Float(), nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=False),
        sa.Column("created_at", orchestrator.db.columns.UtcDateTime(), nullable=False),
        sa.Column("deleted_at", orchestrator.db.columns.UtcDateTime(), nullable=False),
        sa.Column("deleted_by", sa.String(length=200), nullable=False),
        sa.Column("purged", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_deleted_workspace", "deleted_runs", ["workspace_id", "id"])
    op.create_index("ix_deleted_batch", "deleted_runs", ["batch_id"])
    op.create_index("ix_deleted_unpurged", "deleted_runs", ["purged", "id"])


def downgrade() -> None:
    op.drop_table("deleted_runs")
    op.drop_table("pinned_runs")
