"""Providers are rows, and so is what their servers taught about requests."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from orchestrator.db.columns import UtcDateTime

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "providers",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("origin", sa.String(300), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=True),
        sa.Column("revision", sa.String(40), nullable=False),
        sa.Column("created_by", sa.String(200), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "learned_forms",
        sa.Column("provider", sa.String(100), nullable=False),
        sa.Column("server", sa.String(32), nullable=False),
        sa.Column("model", sa.String(200), nullable=False),
        sa.Column("form", sa.JSON(), nullable=True),
        sa.Column("ignored_limit", sa.String(500), nullable=False),
        sa.Column("most_over", sa.Float(), nullable=False),
        sa.Column("learned_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("provider", "server", "model"),
    )


def downgrade() -> None:
    op.drop_table("learned_forms")
    op.drop_table("providers")
