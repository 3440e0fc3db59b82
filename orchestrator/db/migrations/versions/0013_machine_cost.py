"""What attempts used of processor and memory, in sum."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

COLUMNS = ("vcpu_s", "gib_s", "throttled_s")


def upgrade() -> None:
    for name in COLUMNS:
        op.add_column("attempts", sa.Column(name, sa.Float(), nullable=False, server_default="0"))


def downgrade() -> None:
    with op.batch_alter_table("attempts") as table:
        for name in COLUMNS:
            table.drop_column(name)
