"""A table of prices, more kinds of prices of a model, and what caching of prompts saved."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from orchestrator.db.columns import UtcDateTime

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

_OF_MODELS = ("reasoning_price", "batch_input_price", "batch_output_price")


def upgrade() -> None:
    for name in _OF_MODELS:
        op.add_column("models", sa.Column(name, sa.Float(), nullable=True))
    op.add_column("models", sa.Column("long_prompt_prices", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("models", sa.Column("price_source", sa.String(length=300), nullable=True))
    op.add_column("models", sa.Column("context_tokens", sa.Integer(), nullable=True))
    op.add_column("gateway_calls", sa.Column("cache_write_tokens", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("gateway_calls", sa.Column("cache_saving_usd", sa.Float(), nullable=False, server_default="0"))
    op.create_table(
        "price_entries",
        sa.Column("provider", sa.String(length=100), primary_key=True),
        sa.Column("model", sa.String(length=200), primary_key=True),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("source", sa.String(length=300), nullable=False),
        sa.Column("as_of", UtcDateTime(), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("price_entries")
    with op.batch_alter_table("gateway_calls") as table:
        table.drop_column("cache_saving_usd")
        table.drop_column("cache_write_tokens")
    with op.batch_alter_table("models") as table:
        for name in ("context_tokens", "price_source", "long_prompt_prices", *_OF_MODELS):
            table.drop_column(name)
