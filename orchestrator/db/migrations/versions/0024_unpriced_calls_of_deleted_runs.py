"""Calls of deleted runs whose price is not known."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("deleted_runs", sa.Column("unpriced_calls", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    with op.batch_alter_table("deleted_runs") as table:
        table.drop_column("unpriced_calls")
