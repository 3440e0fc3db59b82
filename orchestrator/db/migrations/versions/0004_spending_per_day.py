"""What each model cost on each day, with what was spent so far."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "gateway_spending",
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("settled_usd", sa.Float(), nullable=False),
        sa.Column("lost_usd", sa.Float(), nullable=False),
        sa.Column("lost_sends", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"]),
        sa.PrimaryKeyConstraint("day", "model_id"),
    )
    settled = "settled_at AT TIME ZONE 'UTC'" if op.get_bind().dialect.name == "postgresql" else "settled_at"
    op.execute(
        f"""
        INSERT INTO gateway_spending
            (day, model_id, calls, input_tokens, output_tokens, settled_usd, lost_usd, lost_sends)
        SELECT CAST(date({settled}) AS VARCHAR(10)), r.model_id, count(*), sum(c.input_tokens), sum(c.output_tokens),
            sum(c.cost_usd), 0, 0
        FROM gateway_calls c JOIN container_runs r ON r.id = c.run_id
        WHERE c.state = 'settled' AND c.settled_at IS NOT NULL
        GROUP BY 1, 2
        """  # noqa: S608
    )


def downgrade() -> None:
    op.drop_table("gateway_spending")
