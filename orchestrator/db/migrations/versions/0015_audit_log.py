"""The audit log, which only grows: triggers refuse every other change."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

TABLES = ("audit_log", "audit_retention")
REFUSED = "the audit log is append-only"

POSTGRESQL = f"""
CREATE FUNCTION benchyard_audit_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND TG_TABLE_NAME = 'audit_log' THEN
    IF EXISTS (SELECT 1 FROM audit_retention WHERE before > OLD.at) THEN
      RETURN OLD;
    END IF;
  END IF;
  RAISE EXCEPTION '{REFUSED}';
END $$
"""  # noqa: S608


def upgrade() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor_kind", sa.String(length=20), nullable=False),
        sa.Column("actor", sa.String(length=200), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=True),
        sa.Column("token_id", sa.Integer(), nullable=True),
        sa.Column("workspace_id", sa.Integer(), nullable=True),
        sa.Column("action", sa.String(length=200), nullable=False),
        sa.Column("object_id", sa.String(length=300), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("address", sa.String(length=60), nullable=False),
        sa.Column("request_id", sa.String(length=40), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_audit_workspace", "audit_log", ["workspace_id", "id"])
    op.create_index("ix_audit_at", "audit_log", ["at"])
    op.create_table(
        "audit_retention",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("before", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decided_by", sa.String(length=200), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(POSTGRESQL)
        for table in TABLES:
            op.execute(
                f"CREATE TRIGGER {table}_rows BEFORE UPDATE OR DELETE ON {table} "
                "FOR EACH ROW EXECUTE FUNCTION benchyard_audit_guard()"
            )
            op.execute(
                f"CREATE TRIGGER {table}_all BEFORE TRUNCATE ON {table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION benchyard_audit_guard()"
            )
        return
    abort = f"BEGIN SELECT RAISE(ABORT, '{REFUSED}'); END"
    kept = "WHEN NOT EXISTS (SELECT 1 FROM audit_retention WHERE before > OLD.at)"
    for table in TABLES:
        op.execute(f"CREATE TRIGGER {table}_update BEFORE UPDATE ON {table} {abort}")
        # REPLACE deletes without a DELETE trigger.
        known = f"WHEN EXISTS (SELECT 1 FROM {table} WHERE id = NEW.id)"  # noqa: S608
        op.execute(f"CREATE TRIGGER {table}_replace BEFORE INSERT ON {table} {known} {abort}")
        condition = kept if table == "audit_log" else ""
        op.execute(f"CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} {condition} {abort}")


def downgrade() -> None:
    for table in TABLES:
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION benchyard_audit_guard()")
