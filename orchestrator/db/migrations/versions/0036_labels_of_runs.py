"""Runs have a name, tags, a note and their author."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("container_runs", sa.Column("name", sa.String(length=200), nullable=True))
    op.add_column("container_runs", sa.Column("tags", sa.JSON(), nullable=False, server_default="[]"))
    op.add_column("container_runs", sa.Column("note", sa.Text(), nullable=True))
    op.add_column("container_runs", sa.Column("author", sa.Text(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("container_runs") as table:
        for name in ("author", "note", "tags", "name"):
            table.drop_column(name)
