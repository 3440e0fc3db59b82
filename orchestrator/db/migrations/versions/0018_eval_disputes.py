"""Evals: contradictions in which somebody holds to the label, and the answers of a model while a job goes on."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

import orchestrator.db.columns

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "eval_disputes",
        sa.Column("eval_id", sa.String(length=36), nullable=False),
        sa.Column("trace_number", sa.BigInteger(), nullable=False),
        sa.Column("at", orchestrator.db.columns.UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["eval_id"], ["evals.id"]),
        sa.ForeignKeyConstraint(["trace_number"], ["traces.number"]),
        sa.PrimaryKeyConstraint("eval_id", "trace_number"),
    )
    op.create_index("ix_disputes_trace", "eval_disputes", ["trace_number"])
    op.add_column("eval_jobs", sa.Column("rounds", orchestrator.db.columns.CompressedJson(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("eval_jobs") as table:
        table.drop_column("rounds")
    op.drop_table("eval_disputes")
