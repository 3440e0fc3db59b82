"""Indexes for what the scheduler asks in every round (attempts that have not ended, the queue in its order), and for runs of
a workspace by state and kind, so that the cost depends on what is found and not on what is stored."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

OPEN = {"ix_attempts_held": "ended_at IS NULL", "ix_attempts_unremoved": "removed_at IS NULL"}


def upgrade() -> None:
    for name, condition in OPEN.items():
        where = sa.text(condition)
        op.create_index(name, "attempts", ["run_id"], sqlite_where=where, postgresql_where=where)
    op.create_index("ix_attempts_dispatched", "attempts", ["dispatched_at"])
    # Without the condition, SQLite takes this index to find the attempts without an agent, which are nearly all.
    remote = sa.text("agent_id IS NOT NULL")
    op.drop_index("ix_attempts_agent_id", "attempts")
    op.create_index("ix_attempts_agent_id", "attempts", ["agent_id"], sqlite_where=remote, postgresql_where=remote)
    op.drop_index("ix_runs_queue", "container_runs")
    op.create_index("ix_runs_queue", "container_runs", ["status", sa.text("priority DESC"), "id"])
    op.create_index("ix_runs_state", "container_runs", ["workspace_id", "status", "id"])
    op.create_index("ix_runs_kind", "container_runs", ["workspace_id", "kind", "status", "id"])


def downgrade() -> None:
    op.drop_index("ix_runs_kind", "container_runs")
    op.drop_index("ix_runs_state", "container_runs")
    op.drop_index("ix_runs_queue", "container_runs")
    op.create_index("ix_runs_queue", "container_runs", ["status", "priority", "created_at"])
    op.drop_index("ix_attempts_agent_id", "attempts")
    op.create_index("ix_attempts_agent_id", "attempts", ["agent_id"])
    for name in ("ix_attempts_dispatched", *OPEN):
        op.drop_index(name, "attempts")
