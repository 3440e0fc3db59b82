"""Runners that stand ready for a run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

import orchestrator.db.columns

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "warm_runners",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("container_name", sa.String(length=100), nullable=False),
        sa.Column("container_id", sa.String(length=100), nullable=True),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("engine", sa.String(length=40), nullable=False),
        sa.Column("instance_type", sa.String(length=100), nullable=False),
        sa.Column("sandbox_uid_base", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("runner_id", sa.String(length=100), nullable=True),
        sa.Column("created_at", orchestrator.db.columns.UtcDateTime(), nullable=False),
        sa.Column("ready_at", orchestrator.db.columns.UtcDateTime(), nullable=True),
        sa.Column("seen_at", orchestrator.db.columns.UtcDateTime(), nullable=True),
        sa.Column("run_id", sa.String(length=36), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=True),
        sa.Column("retired", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("container_name"),
    )
    op.create_index("ix_warm_runners_token_hash", "warm_runners", ["token_hash"])


def downgrade() -> None:
    op.drop_table("warm_runners")
