"""A copy of an installation leaves the runs alone that its original was carrying out."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("container_runs", sa.Column("inherited", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    with op.batch_alter_table("container_runs") as table:
        table.drop_column("inherited")
