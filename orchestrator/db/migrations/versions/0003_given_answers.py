"""Stored answers that a run judges without a model."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

import orchestrator.db.columns

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "given_answers",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("benchmark", sa.String(length=100), nullable=False),
        sa.Column("problem_id", sa.String(length=300), nullable=False),
        sa.Column("answers", orchestrator.db.columns.CompressedJson(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["container_runs.id"]),
        sa.PrimaryKeyConstraint("run_id", "benchmark", "problem_id"),
    )


def downgrade() -> None:
    op.drop_table("given_answers")
