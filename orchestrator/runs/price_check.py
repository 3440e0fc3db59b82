"""Refuses a run that money is limited for when its model has no price: no call of it could ever be allowed.

It is checked where every run is queued, within the same transaction. If a price or a limit changes later, the gateway
refuses the calls, and the run fails with `price_unknown`.
"""

from __future__ import annotations

from sqlmodel import Session

from orchestrator.db.workspaces import acting_in
from orchestrator.errors import Invalid
from orchestrator.models.tables import LlmModel
from orchestrator.provider_keys import queries as key_queries
from orchestrator.provider_keys.queries import EVERYONE, WORKSPACE
from orchestrator.runs.tables import ContainerRun
from runner.contract.run_spec import RunKind

ASKING_KINDS = frozenset({RunKind.BENCHMARK, RunKind.EVAL_GENERATE})


class PriceUnknown(Invalid):
    """The run has a budget or falls under a limit, and nobody knows what its model costs."""


def check_price(session: Session, run: ContainerRun, model: LlmModel, daily_budget_usd: float | None) -> None:
    """Raises `PriceUnknown`. Call it before the run is stored."""
    if run.kind not in ASKING_KINDS or (model.input_price is not None and model.output_price is not None):
        return
    limit = limit_on(session, run.budget_usd, run.user_id, daily_budget_usd, workspace_id=run.workspace_id)
    if limit is not None:
        raise PriceUnknown(_sentence(limit, model, own=run.budget_usd is not None))


def check_price_of_schedule(
    session: Session, model: LlmModel, budget_usd: float | None, user_id: int | None, daily_budget_usd: float | None
) -> None:
    """The same for the runs that a schedule will make."""
    if model.input_price is not None and model.output_price is not None:
        return
    limit = limit_on(session, budget_usd, user_id, daily_budget_usd)
    if limit is not None:
        raise PriceUnknown(_sentence(limit, model, own=budget_usd is not None))


def limit_on(
    session: Session,
    budget_usd: float | None,
    user_id: int | None,
    daily_budget_usd: float | None,
    *,
    workspace_id: int | None = None,
) -> str | None:
    """What limits the money of a run, in words; None where nothing does."""
    who = acting_in(session)
    workspace_id = who.workspace_id if who else workspace_id
    user_id = user_id or (who.user_id if who else None)
    rows = key_queries.limits_of(session, workspace_id) if workspace_id is not None else {}
    of_workspace, of_user = rows.get(WORKSPACE), rows.get(str(user_id)) or rows.get(EVERYONE)
    if budget_usd is not None:
        return f"the run has a budget of ${budget_usd:g}"
    if daily_budget_usd is not None:
        return f"the service has a budget of ${daily_budget_usd:g} a day"
    if of_workspace is not None and of_workspace.spend_per_day_usd is not None:
        return f"the workspace has a limit of ${of_workspace.spend_per_day_usd:g} a day"
    if user_id is not None and of_user is not None and of_user.spend_per_day_usd is not None:
        return f"its user has a limit of ${of_user.spend_per_day_usd:g} a day"
    return None


def _sentence(limit: str, model: LlmModel, *, own: bool) -> str:
    missing = [name for name in ("input_price", "output_price") if getattr(model, name) is None]
    options = " ".join(f"--{name.replace('_', '-')} USD" for name in missing)
    how = f"PATCH /api/models/{model.id}, or `benchyard models set {model.slug} {options}`"
    other = ", or leave the budget out" if own else ""
    return (
        f"{limit}, which cannot be kept: the price of {model.slug} is not known; enter {' and '.join(missing)} in US "
        f"dollars per million tokens, 0 if it is free ({how}){other}"
    )
