"""Calls to the model that judges a run's answers are marked, and their cost is kept apart.

`gateway_calls.judge_model_id` names the judge; it is empty for calls to the measured model.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("gateway_calls", sa.Column("judge_model_id", sa.Integer(), nullable=True))
    op.add_column("container_runs", sa.Column("judge_cost_usd", sa.Float(), nullable=False, server_default="0"))


def downgrade() -> None:
    with op.batch_alter_table("container_runs") as table:
        table.drop_column("judge_cost_usd")
    with op.batch_alter_table("gateway_calls") as table:
        table.drop_column("judge_model_id")
