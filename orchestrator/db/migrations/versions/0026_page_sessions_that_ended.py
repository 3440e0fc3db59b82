"""Page sessions of tokens that somebody signed out of."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

import orchestrator.db.columns

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "ended_page_sessions",
        sa.Column("cookie_hash", sa.String(length=64), nullable=False),
        sa.Column("until", orchestrator.db.columns.UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("cookie_hash"),
    )


def downgrade() -> None:
    op.drop_table("ended_page_sessions")
