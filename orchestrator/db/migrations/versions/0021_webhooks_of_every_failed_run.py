"""A webhook can ask to be told of every run that fails, not only of scheduled ones."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    column: sa.Column[bool] = sa.Column("every_failed_run", sa.Boolean(), nullable=False, server_default=sa.false())
    op.add_column("webhooks", column)


def downgrade() -> None:
    with op.batch_alter_table("webhooks") as table:
        table.drop_column("every_failed_run")
