"""The gateway: calls under way are few and written twice each, so they are found by looking at all of them."""

from __future__ import annotations

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index("ix_gateway_flights_until", "gateway_flights")
    op.drop_index("ix_gateway_flights_owner", "gateway_flights")


def downgrade() -> None:
    op.create_index("ix_gateway_flights_owner", "gateway_flights", ["owner"])
    op.create_index("ix_gateway_flights_until", "gateway_flights", ["until"])
