"""Indexes for what the overview shows: runs per day, and the newest finished runs of each model."""

from __future__ import annotations

from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_runs_days", "container_runs", ["workspace_id", "created_at", "status"])
    op.create_index("ix_runs_scored", "container_runs", ["model_id", "kind", "status", "workspace_id", "id"])


def downgrade() -> None:
    op.drop_index("ix_runs_scored", "container_runs")
    op.drop_index("ix_runs_days", "container_runs")
