"""Other machines that run containers, and runs that are meant for one of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

import orchestrator.db.columns

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "agents",
        sa.Column("id", sa.String(length=30), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("provider", sa.String(length=60), nullable=False),
        sa.Column("engine", sa.String(length=40), nullable=False),
        sa.Column("instance_types", sa.JSON(), nullable=False),
        sa.Column("max_at_once", sa.Integer(), nullable=False),
        sa.Column("vcpu", sa.Float(), nullable=False),
        sa.Column("memory_bytes", sa.BigInteger(), nullable=False),
        sa.Column("door_url", sa.String(length=300), nullable=False),
        sa.Column("leaving", sa.Boolean(), nullable=False),
        sa.Column("created_at", orchestrator.db.columns.UtcDateTime(), nullable=False),
        sa.Column("seen_at", orchestrator.db.columns.UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.add_column("container_runs", sa.Column("provider", sa.String(length=60), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("container_runs") as table:
        table.drop_column("provider")
    op.drop_table("agents")
