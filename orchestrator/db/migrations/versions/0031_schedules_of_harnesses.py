"""A schedule may run a harness, which then takes the place of benchmarks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("schedules", sa.Column("harness", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("schedules") as table:
        table.drop_column("harness")
