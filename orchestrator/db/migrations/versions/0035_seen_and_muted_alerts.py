"""Alerts can be acknowledged and muted, and messages have the form of their receiver."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from orchestrator.db.columns import UtcDateTime

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("alerts", sa.Column("muted", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("alerts", sa.Column("acknowledged_at", UtcDateTime(), nullable=True))
    op.add_column("alerts", sa.Column("acknowledged_by", sa.Text(), nullable=True))
    op.add_column("webhooks", sa.Column("format", sa.String(length=20), nullable=False, server_default="standard"))
    op.create_table(
        "alert_mutes",
        sa.Column("workspace_id", sa.Integer(), nullable=False, server_default="1"),
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("model_id", sa.Integer(), sa.ForeignKey("models.id", ondelete="CASCADE"), nullable=False),
        sa.Column("until", UtcDateTime(), nullable=False),
        sa.Column("muted_by", sa.Text(), nullable=False),
    )
    op.create_index("ix_alert_mutes_model_id", "alert_mutes", ["model_id"])


def downgrade() -> None:
    op.drop_table("alert_mutes")
    with op.batch_alter_table("webhooks") as table:
        table.drop_column("format")
    with op.batch_alter_table("alerts") as table:
        table.drop_column("acknowledged_by")
        table.drop_column("acknowledged_at")
        table.drop_column("muted")
