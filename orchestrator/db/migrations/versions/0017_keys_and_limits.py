"""Provider keys of workspaces and users, limits, and whose key paid for a call."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "provider_keys",
        sa.Column("workspace_id", sa.Integer(), nullable=False, server_default="1"),
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("provider", sa.String(length=100), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("origin", sa.String(length=300), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("hint", sa.String(length=4), nullable=False),
        sa.Column("created_by", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("workspace_id", "user_id", "provider", name="uq_provider_keys_holder"),
    )
    op.create_table(
        "limits",
        sa.Column("workspace_id", sa.Integer(), autoincrement=False, nullable=False, server_default="1"),
        sa.Column("whose", sa.String(length=20), nullable=False),
        sa.Column("runs_at_once", sa.Integer(), nullable=True),
        sa.Column("spend_per_day_usd", sa.Float(), nullable=True),
        sa.Column("requests_per_second", sa.Float(), nullable=True),
        sa.Column("updated_by", sa.String(length=200), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("workspace_id", "whose"),
    )
    op.create_table(
        "gateway_user_spending",
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("workspace_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("user_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("settled_usd", sa.Float(), nullable=False),
        sa.Column("lost_usd", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("day", "workspace_id", "user_id"),
    )
    op.add_column("gateway_calls", sa.Column("payer", sa.String(length=20), nullable=False, server_default="system"))
    op.add_column("gateway_calls", sa.Column("payer_name", sa.String(length=200), nullable=False, server_default=""))


def downgrade() -> None:
    with op.batch_alter_table("gateway_calls") as table:
        table.drop_column("payer")
        table.drop_column("payer_name")
    for name in ("gateway_user_spending", "limits", "provider_keys"):
        op.drop_table(name)
