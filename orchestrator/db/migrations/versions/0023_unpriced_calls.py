"""Calls of which nobody knows what they cost, because their model had no price: counted, so that no sum calls them free."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_MODELS = sa.table("models", sa.column("id"), sa.column("input_price"), sa.column("output_price"))
_RUNS = sa.table("container_runs", sa.column("id"), sa.column("model_id"), sa.column("unpriced_calls"))
_CALLS = sa.table(
    "gateway_calls",
    sa.column("run_id"),
    sa.column("state"),
    sa.column("source"),
    sa.column("cost_usd"),
    sa.column("priced", sa.Boolean()),
)
_DAYS = sa.table(
    "gateway_spending", sa.column("model_id"), sa.column("calls"), sa.column("settled_usd"), sa.column("unpriced_calls")
)


def upgrade() -> None:
    for table in ("container_runs", "gateway_spending"):
        op.add_column(table, sa.Column("unpriced_calls", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("gateway_calls", sa.Column("priced", sa.Boolean(), nullable=False, server_default=sa.true()))
    # Of old calls the price of today tells it: those of a model without one, that were bought and have no cost.
    no_price = sa.or_(_MODELS.c.input_price.is_(None), _MODELS.c.output_price.is_(None))
    unpriced_models = sa.select(_MODELS.c.id).where(no_price).scalar_subquery()
    of_model = sa.select(_RUNS.c.id).where(_RUNS.c.model_id.in_(unpriced_models)).scalar_subquery()
    bought = sa.and_(_CALLS.c.state == "settled", _CALLS.c.source == "bought", _CALLS.c.cost_usd == 0)
    op.execute(_CALLS.update().where(bought, _CALLS.c.run_id.in_(of_model)).values(priced=sa.false()))
    count = (
        sa.select(sa.func.count()).where(_CALLS.c.run_id == _RUNS.c.id, _CALLS.c.priced.is_(sa.false())).scalar_subquery()
    )
    op.execute(_RUNS.update().where(_RUNS.c.model_id.in_(unpriced_models)).values(unpriced_calls=count))
    no_cost = sa.and_(_DAYS.c.settled_usd == 0, _DAYS.c.model_id.in_(unpriced_models))
    op.execute(_DAYS.update().where(no_cost).values(unpriced_calls=_DAYS.c.calls))


def downgrade() -> None:
    with op.batch_alter_table("gateway_calls") as table:
        table.drop_column("priced")
    for name in ("gateway_spending", "container_runs"):
        with op.batch_alter_table(name) as table:
            table.drop_column("unpriced_calls")
