"""Users, workspaces, members, sign-ins. Everything that is there belongs to the workspace `default`."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

from orchestrator.db.columns import UtcDateTime

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

PLAIN = ("container_runs", "events", "alerts", "webhooks", "evals")
"""Only get the column."""
UNIQUE = {"batches": "external_id", "eval_sets": "name", "traces": "id", "api_tokens": "name"}
"""What was unique everywhere is unique within a workspace."""
KEYS = {
    "schedules": ["workspace_id", "model_id"],
    "schedule_panels": ["workspace_id", "model_id", "version"],
    "schedule_fires": ["workspace_id", "model_id", "instant"],
    "gateway_spending": ["day", "workspace_id", "model_id"],
    "idempotency_keys": ["workspace_id", "key", "scope"],
}
WHOSE = ("container_runs", "batches", "schedules", "api_tokens")
"""Say which user made them, if it was one."""
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
NAMES = {"uq": "uq_%(table_name)s_%(column_0_name)s", "pk": "pk_%(table_name)s"}


def upgrade() -> None:
    _accounts()
    now = datetime.now(UTC)
    workspaces = sa.table("workspaces", sa.column("id"), sa.column("slug"), sa.column("name"), sa.column("created_at"))
    values = {"id": 1, "slug": "default", "name": "Default", "created_at": now}
    op.execute(sa.insert(workspaces).values(**{**values, "created_at": sa.literal(now, UtcDateTime())}))
    if op.get_bind().dialect.name == "postgresql":
        op.execute("SELECT setval(pg_get_serial_sequence('workspaces', 'id'), 1)")
    for table in (*PLAIN, *UNIQUE, *KEYS):
        op.add_column(table, sa.Column("workspace_id", sa.Integer(), nullable=False, server_default="1"))
    for table in WHOSE:
        op.add_column(table, sa.Column("user_id", sa.Integer(), nullable=True))
    op.create_index("ix_runs_workspace", "container_runs", ["workspace_id", "id"])
    op.execute("DROP VIEW eval_verdicts")
    for table, column in UNIQUE.items():
        _unique(table, column, ["workspace_id", column])
    for table, key in KEYS.items():
        _key(table, key)
    op.execute(VIEW)


def downgrade() -> None:
    op.execute("DROP VIEW eval_verdicts")
    for table in (*UNIQUE, *KEYS, *PLAIN):
        op.execute(f"DELETE FROM {table} WHERE workspace_id <> 1")  # noqa: S608
    for table, key in KEYS.items():
        _key(table, [name for name in key if name != "workspace_id"])
    for table, column in UNIQUE.items():
        _unique(table, column, [column], was=f"uq_{table}_workspace")
    op.drop_index("ix_runs_workspace", "container_runs")
    for table in (*PLAIN, *UNIQUE, *KEYS):
        with op.batch_alter_table(table) as changed:
            changed.drop_column("workspace_id")
            if table in WHOSE:
                changed.drop_column("user_id")
    op.execute(VIEW)
    for table in ("login_attempts", "login_sessions", "memberships", "workspaces", "users"):
        op.drop_table(table)


def _unique(table: str, column: str, columns: list[str], was: str | None = None) -> None:
    given = f"{table}_{column}_key" if op.get_bind().dialect.name == "postgresql" else f"uq_{table}_{column}"
    name = f"uq_{table}_workspace" if was is None else given
    with op.batch_alter_table(table, naming_convention=NAMES) as changed:
        changed.drop_constraint(was or given, type_="unique")
        changed.create_unique_constraint(name, columns)


def _key(table: str, columns: list[str]) -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint(f"{table}_pkey", table, type_="primary")
        op.create_primary_key(f"{table}_pkey", table, columns)
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Table .* specifies columns", sa.exc.SAWarning)  # it is the point of this
        with op.batch_alter_table(table, recreate="always", naming_convention=NAMES) as changed:
            changed.create_primary_key(f"pk_{table}", columns)


def _accounts() -> None:
    utc = UtcDateTime(timezone=True)
    op.create_table(
        "users",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("issuer", sa.String(length=400), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("email", sa.String(length=320), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("owner", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("created_at", utc, nullable=False),
        sa.Column("last_seen_at", utc, nullable=True),
        sa.Column("disabled_at", utc, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("issuer", "subject", name="uq_users_identity"),
    )
    op.create_table(
        "workspaces",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("slug", sa.String(length=60), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("created_at", utc, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("slug"),
    )
    op.create_table(
        "memberships",
        sa.Column("user_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("workspace_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("created_at", utc, nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"]),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.id"]),
        sa.PrimaryKeyConstraint("user_id", "workspace_id"),
    )
    op.create_index("ix_memberships_workspace_id", "memberships", ["workspace_id"])
    op.create_table(
        "login_sessions",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("previous_hash", sa.String(length=64), nullable=True),
        sa.Column("previous_until", utc, nullable=True),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("workspace_id", sa.Integer(), nullable=False),
        sa.Column("agent", sa.String(length=200), nullable=False),
        sa.Column("address", sa.String(length=60), nullable=False),
        sa.Column("created_at", utc, nullable=False),
        sa.Column("seen_at", utc, nullable=False),
        sa.Column("rotated_at", utc, nullable=False),
        sa.Column("expires_at", utc, nullable=False),
        sa.Column("tokens_until", utc, nullable=True),
        sa.Column("refresh_token", sa.Text(), nullable=True),
        sa.Column("access_token", sa.Text(), nullable=True),
        sa.Column("id_token", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"]),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("secret_hash"),
    )
    for column in ("previous_hash", "user_id", "expires_at"):
        op.create_index(f"ix_login_sessions_{column}", "login_sessions", [column])
    op.create_table(
        "login_attempts",
        sa.Column("state_hash", sa.String(length=64), nullable=False),
        sa.Column("browser_hash", sa.String(length=64), nullable=False),
        sa.Column("nonce", sa.String(length=100), nullable=False),
        sa.Column("verifier", sa.String(length=128), nullable=False),
        sa.Column("wanted", sa.Text(), nullable=False),
        sa.Column("loopback", sa.Text(), nullable=True),
        sa.Column("created_at", utc, nullable=False),
        sa.Column("expires_at", utc, nullable=False),
        sa.PrimaryKeyConstraint("state_hash"),
    )
    op.create_index("ix_login_attempts_expires_at", "login_attempts", ["expires_at"])
