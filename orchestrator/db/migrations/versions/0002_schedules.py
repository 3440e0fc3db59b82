"""Schedules: panels, fires, alerts and webhooks.

Nothing could write to `schedules` before this version, so the table is made anew instead of altered column by column.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

import orchestrator.db.columns

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "alerts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("uid", sa.String(length=60), nullable=False),
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=30), nullable=False),
        sa.Column("run_id", sa.String(length=36), nullable=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("at", orchestrator.db.columns.UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("uid"),
    )
    with op.batch_alter_table("alerts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_alerts_model_id"), ["model_id"], unique=False)

    op.create_table(
        "schedule_panels",
        sa.Column("model_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("draw", sa.String(length=20), nullable=False),
        sa.Column("how", sa.Text(), nullable=False),
        sa.Column("benchmarks", orchestrator.db.columns.CompressedJson(), nullable=False),
        sa.Column("problems", sa.Integer(), nullable=False),
        sa.Column("created_at", orchestrator.db.columns.UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("model_id", "version"),
    )
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.String(length=100), nullable=False),
        sa.Column("model_id", sa.Integer(), nullable=True),
        sa.Column("created_at", orchestrator.db.columns.UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("webhooks", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_webhooks_model_id"), ["model_id"], unique=False)

    op.create_table(
        "schedule_fires",
        sa.Column("model_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("instant", orchestrator.db.columns.UtcDateTime(timezone=True), nullable=False),
        sa.Column("outcome", sa.String(length=30), nullable=False),
        sa.Column("cause", sa.String(length=20), nullable=False),
        sa.Column("run_id", sa.String(length=36), nullable=True),
        sa.Column("panel_version", sa.Integer(), nullable=False),
        sa.Column("late_s", sa.Float(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("recorded_at", orchestrator.db.columns.UtcDateTime(timezone=True), nullable=False),
        sa.Column("verdict", sa.String(length=20), nullable=True),
        sa.Column("look", sa.Integer(), nullable=True),
        sa.Column("comparison", orchestrator.db.columns.CompressedJson(), nullable=True),
        sa.Column("judged_at", orchestrator.db.columns.UtcDateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["container_runs.id"],
        ),
        sa.PrimaryKeyConstraint("model_id", "instant"),
    )
    with op.batch_alter_table("schedule_fires", schema=None) as batch_op:
        batch_op.create_index("ix_fires_panel", ["model_id", "panel_version", "look"], unique=False)
        batch_op.create_index("ix_fires_run", ["run_id"], unique=False)
        batch_op.create_index("ix_fires_unjudged", ["verdict", "run_id"], unique=False)

    op.create_table(
        "webhook_deliveries",
        sa.Column("webhook_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("alert_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("not_before", orchestrator.db.columns.UtcDateTime(timezone=True), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("delivered_at", orchestrator.db.columns.UtcDateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["alert_id"], ["alerts.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["webhook_id"], ["webhooks.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("webhook_id", "alert_id"),
    )
    with op.batch_alter_table("webhook_deliveries", schema=None) as batch_op:
        batch_op.create_index("ix_deliveries_state", ["state", "webhook_id", "alert_id"], unique=False)

    op.drop_table("schedules")
    op.create_table(
        "schedules",
        sa.Column("model_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("cron_expression", sa.String(length=200), nullable=False),
        sa.Column("timezone", sa.String(length=60), nullable=False),
        sa.Column("sample_size", sa.Integer(), nullable=False),
        sa.Column("benchmarks", sa.JSON(), nullable=False),
        sa.Column("instance_type", sa.String(length=100), nullable=True),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("next_fire_at", orchestrator.db.columns.UtcDateTime(timezone=True), nullable=True),
        sa.Column("created_at", orchestrator.db.columns.UtcDateTime(timezone=True), nullable=False),
        sa.Column("updated_at", orchestrator.db.columns.UtcDateTime(timezone=True), nullable=False),
        sa.Column("samples_per_problem", sa.Integer(), nullable=False),
        sa.Column("concurrency", sa.Integer(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("budget_usd", sa.Float(), nullable=True),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("draw", sa.String(length=20), nullable=False),
        sa.Column("panel_version", sa.Integer(), nullable=False),
        sa.Column("misfire", sa.String(length=20), nullable=False),
        sa.Column("misfire_grace_s", sa.Integer(), nullable=False),
        sa.Column("overlap", sa.String(length=20), nullable=False),
        sa.Column("baseline", sa.String(length=20), nullable=False),
        sa.Column("baseline_run_id", sa.String(length=36), nullable=True),
        sa.Column("baseline_runs", sa.Integer(), nullable=False),
        sa.Column("alarm_rate", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("model_id"),
    )
    with op.batch_alter_table("schedules", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_schedules_next_fire_at"), ["next_fire_at"], unique=False)


def downgrade() -> None:
    op.drop_table("schedules")
    op.create_table(
        "schedules",
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("cron_expression", sa.String(length=200), nullable=False),
        sa.Column("timezone", sa.String(length=60), nullable=False),
        sa.Column("sample_size", sa.Integer(), nullable=False),
        sa.Column("benchmarks", sa.JSON(), nullable=False),
        sa.Column("instance_type", sa.String(length=100), nullable=True),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("next_fire_at", orchestrator.db.columns.UtcDateTime(timezone=True), nullable=True),
        sa.Column("created_at", orchestrator.db.columns.UtcDateTime(timezone=True), nullable=False),
        sa.Column("updated_at", orchestrator.db.columns.UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"]),
        sa.PrimaryKeyConstraint("model_id"),
    )
    with op.batch_alter_table("schedules", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_schedules_next_fire_at"), ["next_fire_at"], unique=False)

    with op.batch_alter_table("webhook_deliveries", schema=None) as batch_op:
        batch_op.drop_index("ix_deliveries_state")

    op.drop_table("webhook_deliveries")
    with op.batch_alter_table("schedule_fires", schema=None) as batch_op:
        batch_op.drop_index("ix_fires_unjudged")
        batch_op.drop_index("ix_fires_run")
        batch_op.drop_index("ix_fires_panel")

    op.drop_table("schedule_fires")
    with op.batch_alter_table("webhooks", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_webhooks_model_id"))

    op.drop_table("webhooks")
    op.drop_table("schedule_panels")
    with op.batch_alter_table("alerts", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_alerts_model_id"))

    op.drop_table("alerts")
