"""Which agent has an attempt, in a column of its own: before, it was the end of the engine's name (`agent:<id>`)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

ATTEMPTS = sa.table("attempts", sa.column("engine", sa.String), sa.column("agent_id", sa.String))


def upgrade() -> None:
    op.add_column("attempts", sa.Column("agent_id", sa.String(length=30), nullable=True))
    op.create_index("ix_attempts_agent_id", "attempts", ["agent_id"])
    agent_id = sa.func.substr(ATTEMPTS.c.engine, len("agent:") + 1)
    remote = ATTEMPTS.c.engine.like("agent:%")
    op.execute(ATTEMPTS.update().where(remote).values(agent_id=agent_id, engine="agent"))


def downgrade() -> None:
    engine = sa.literal("agent:") + ATTEMPTS.c.agent_id
    op.execute(ATTEMPTS.update().where(ATTEMPTS.c.agent_id.is_not(None)).values(engine=engine))
    op.drop_index("ix_attempts_agent_id", "attempts")
    op.drop_column("attempts", "agent_id")
