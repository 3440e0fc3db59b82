"""What each attempt used of processor and memory over time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "attempt_usage",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("samples", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["run_id", "number"], ["attempts.run_id", "attempts.number"]),
        sa.PrimaryKeyConstraint("run_id", "number"),
    )


def downgrade() -> None:
    op.drop_table("attempt_usage")
