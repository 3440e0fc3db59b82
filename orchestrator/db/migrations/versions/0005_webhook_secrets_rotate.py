"""The secret of a webhook can be changed while the one before still signs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from orchestrator.db.columns import UtcDateTime

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("webhooks", sa.Column("previous_secret", sa.String(length=100), nullable=True))
    op.add_column("webhooks", sa.Column("previous_until", UtcDateTime(timezone=True), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("webhooks") as table:
        table.drop_column("previous_until")
        table.drop_column("previous_secret")
