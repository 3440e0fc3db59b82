"""The value of an answer that is not pass or fail, between 0 and 1."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("item_results", sa.Column("score", sa.Float(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("item_results") as table:
        table.drop_column("score")
