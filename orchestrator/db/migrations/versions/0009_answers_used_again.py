"""Answers that another run may use again, and the price of writing to a provider's cache."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("models", sa.Column("cache_write_price", sa.Float(), nullable=True))
    op.add_column("container_runs", sa.Column("reuse_answers", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("gateway_calls", sa.Column("question_key", sa.String(length=64), nullable=True))
    op.add_column("gateway_calls", sa.Column("source", sa.String(length=20), server_default="bought", nullable=False))
    op.add_column("gateway_calls", sa.Column("from_run", sa.String(length=36), nullable=True))
    op.add_column("gateway_calls", sa.Column("from_key", sa.String(length=400), nullable=True))
    op.create_index("ix_calls_question", "gateway_calls", ["question_key"])
    op.create_index("ix_calls_from", "gateway_calls", ["run_id", "from_run", "from_key"], unique=True)


def downgrade() -> None:
    op.drop_index("ix_calls_from", table_name="gateway_calls")
    op.drop_index("ix_calls_question", table_name="gateway_calls")
    for column in ("from_key", "from_run", "source", "question_key"):
        op.drop_column("gateway_calls", column)
    op.drop_column("container_runs", "reuse_answers")
    op.drop_column("models", "cache_write_price")
