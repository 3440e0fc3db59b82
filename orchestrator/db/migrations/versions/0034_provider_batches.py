"""Calls through the providers' batches: the calls that wait, the batches, and what is reserved for them.

A run that waits for a batch has no container; `waited_s` is what its deadline does not count.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from orchestrator.db.columns import UtcDateTime

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("container_runs", sa.Column("batch", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("container_runs", sa.Column("waiting_since", UtcDateTime(), nullable=True))
    op.add_column("container_runs", sa.Column("waited_s", sa.Float(), server_default="0", nullable=False))
    op.add_column("schedules", sa.Column("batch", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.create_table(
        "batch_calls",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("call_key", sa.String(length=400), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("lot", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("worst_nano_usd", sa.BigInteger(), nullable=False),
        sa.Column("part_id", sa.String(length=36), nullable=True),
        sa.Column("position", sa.Integer(), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["container_runs.id"]),
        sa.PrimaryKeyConstraint("run_id", "call_key"),
    )
    op.create_index("ix_batch_calls_part", "batch_calls", ["part_id", "position"])
    op.create_index("ix_batch_calls_state", "batch_calls", ["run_id", "state"])
    op.create_table(
        "batch_parts",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("lot", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("answered", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("file_id", sa.String(length=200), nullable=True),
        sa.Column("remote_id", sa.String(length=200), nullable=True),
        sa.Column("cancel_sent", sa.Boolean(), nullable=False),
        sa.Column("troubles", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("submit_began_at", UtcDateTime(), nullable=True),
        sa.Column("submitted_at", UtcDateTime(), nullable=True),
        sa.Column("expires_at", UtcDateTime(), nullable=True),
        sa.Column("next_look_at", UtcDateTime(), nullable=False),
        sa.Column("ended_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_batch_parts_run", "batch_parts", ["run_id", "created_at"])
    op.create_index("ix_batch_parts_state", "batch_parts", ["state"])
    op.create_table(
        "batch_reserves",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("nano_usd", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["container_runs.id"]),
        sa.PrimaryKeyConstraint("run_id"),
    )


def downgrade() -> None:
    op.drop_table("batch_reserves")
    op.drop_table("batch_parts")
    op.drop_table("batch_calls")
    with op.batch_alter_table("schedules") as table:
        table.drop_column("batch")
    with op.batch_alter_table("container_runs") as table:
        table.drop_column("waited_s")
        table.drop_column("waiting_since")
        table.drop_column("batch")
