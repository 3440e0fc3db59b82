"""Evals: sets, traces, feedback, versions of code, executions, jobs about them, and the view of contradictions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

import orchestrator.db.columns

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

VIEW = """
CREATE VIEW eval_verdicts AS
SELECT x.eval_id, e.eval_set_id, x.trace_number, t.id AS trace_id, x.passed, x.score, x.reason, x.failure, x.wall_ms, x.at,
       f.rating, f.note,
       (x.passed IS NOT NULL AND f.rating IS NOT NULL
        AND ((x.passed AND f.rating = 'negative') OR (NOT x.passed AND f.rating = 'positive'))) AS contradiction
FROM eval_executions x
JOIN evals e ON e.id = x.eval_id
JOIN traces t ON t.number = x.trace_number
LEFT JOIN trace_feedback f ON f.eval_set_id = e.eval_set_id AND f.trace_number = x.trace_number
"""


def upgrade() -> None:
    utc = orchestrator.db.columns.UtcDateTime
    packed = orchestrator.db.columns.CompressedJson
    event_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "eval_sets",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("project", sa.String(length=100), nullable=True),
        sa.Column("created_at", utc(), nullable=False),
        sa.Column("updated_at", utc(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "traces",
        sa.Column("number", event_id, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("project", sa.String(length=100), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("data", packed(), nullable=False),
        sa.Column("created_at", utc(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("id"),
    )
    op.create_index("ix_traces_project", "traces", ["project", "number"])
    op.create_table(
        "trace_feedback",
        sa.Column("eval_set_id", sa.String(length=36), nullable=False),
        sa.Column("trace_number", sa.BigInteger(), nullable=False),
        sa.Column("rating", sa.String(length=10), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_at", utc(), nullable=False),
        sa.Column("updated_at", utc(), nullable=False),
        sa.ForeignKeyConstraint(["eval_set_id"], ["eval_sets.id"]),
        sa.ForeignKeyConstraint(["trace_number"], ["traces.number"]),
        sa.PrimaryKeyConstraint("eval_set_id", "trace_number"),
    )
    op.create_index("ix_feedback_trace", "trace_feedback", ["trace_number"])
    op.create_table(
        "evals",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("eval_set_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("training_n", sa.Integer(), nullable=False),
        sa.Column("training_right", sa.Integer(), nullable=False),
        sa.Column("held_out_n", sa.Integer(), nullable=False),
        sa.Column("held_out_right", sa.Integer(), nullable=False),
        sa.Column("tests", packed(), nullable=False),
        sa.Column("rounds", packed(), nullable=False),
        sa.Column("execution_count", sa.Integer(), nullable=False),
        sa.Column("passed_count", sa.Integer(), nullable=False),
        sa.Column("failure_count", sa.Integer(), nullable=False),
        sa.Column("contradiction_count", sa.Integer(), nullable=False),
        sa.Column("created_at", utc(), nullable=False),
        sa.Column("updated_at", utc(), nullable=False),
        sa.ForeignKeyConstraint(["eval_set_id"], ["eval_sets.id"]),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("eval_set_id", "name", "version", name="uq_evals_version"),
    )
    op.create_index("ix_evals_eval_set_id", "evals", ["eval_set_id"])
    op.create_table(
        "eval_executions",
        sa.Column("eval_id", sa.String(length=36), nullable=False),
        sa.Column("trace_number", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=True),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("failure", sa.String(length=20), nullable=True),
        sa.Column("wall_ms", sa.Float(), nullable=False),
        sa.Column("at", utc(), nullable=False),
        sa.ForeignKeyConstraint(["eval_id"], ["evals.id"]),
        sa.ForeignKeyConstraint(["trace_number"], ["traces.number"]),
        sa.PrimaryKeyConstraint("eval_id", "trace_number"),
    )
    op.create_index("ix_executions_trace", "eval_executions", ["trace_number"])
    op.create_index("ix_executions_run", "eval_executions", ["run_id"])
    op.create_table(
        "eval_jobs",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("eval_set_id", sa.String(length=36), nullable=False),
        sa.Column("eval_id", sa.String(length=36), nullable=True),
        sa.Column("stage", sa.String(length=30), nullable=True),
        sa.Column("percent", sa.Integer(), nullable=False),
        sa.Column("stage_done", sa.Integer(), nullable=True),
        sa.Column("stage_total", sa.Integer(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("spent_ms", sa.Float(), nullable=False),
        sa.Column("error_code", sa.String(length=40), nullable=True),
        sa.Column("payload", packed(), nullable=False),
        sa.Column("result", packed(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["container_runs.id"]),
        sa.PrimaryKeyConstraint("run_id"),
    )
    op.create_index("ix_eval_jobs_eval_set_id", "eval_jobs", ["eval_set_id"])
    op.create_index("ix_eval_jobs_eval_id", "eval_jobs", ["eval_id"])
    op.execute(VIEW)


def downgrade() -> None:
    op.execute("DROP VIEW eval_verdicts")
    for name in ("eval_jobs", "eval_executions", "evals", "trace_feedback", "traces", "eval_sets"):
        op.drop_table(name)
