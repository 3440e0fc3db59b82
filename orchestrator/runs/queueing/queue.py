"""The only way to queue a run: `enqueue` stores a draft as a pending row in the caller's transaction.

Nothing is launched here: the row is the queue, and the dispatcher takes it when there is room. A run with a budget or a
spending limit is refused if its model has no price, because the gateway could not allow any of its calls. If a price or
limit changes later, the gateway refuses the calls and the run fails with `price_unknown`.
"""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session

from orchestrator.archives import queries as archive_queries
from orchestrator.db.idempotency import Idempotency, answer_once
from orchestrator.db.workspaces import acting_in
from orchestrator.errors import Invalid, NotFound
from orchestrator.grading import queries as given_queries
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.provider_keys import queries as key_queries
from orchestrator.provider_keys.queries import EVERYONE, WORKSPACE
from orchestrator.runs import item_queries
from orchestrator.runs.lifecycle import Status
from orchestrator.runs.live import queries as event_queries
from orchestrator.runs.queueing.drafts import RETRY, Benchmark, Draft, EvalJob, Harness
from orchestrator.runs.queueing.judges import judge_models, with_judges
from orchestrator.runs.reports.model_names import model_name
from orchestrator.runs.tables import ContainerRun
from orchestrator.system.identifiers import uuid7
from runner.contract.events import NOT_THE_MODELS_FAULT, Outcome
from runner.contract.run_spec import RunKind

_FROM_DRAFT = (
    "model_id",
    "user_id",
    "trigger_type",
    "retry_of",
    "batch_id",
    "batch_slot",
    "sample_size",
    "subset_pct",
    "samples_per_problem",
    "seed",
    "instance_type",
    "provider",
    "concurrency",
    "priority",
    "budget_usd",
    "reuse_answers",
    "batch",
    "deadline_s",
    "task",
    "not_before",
)
"""Columns that are copied from the draft unchanged."""


def enqueue(
    session: Session,
    draft: Draft,
    idempotency: Idempotency | None = None,
    *,
    now: datetime,
    daily_budget_usd: float | None,
    run_id: str | None = None,
) -> str:
    """Returns the id of the new run, or of the run that an earlier identical request created.

    Raises `PriceUnknown` or `JudgeMissing`. `daily_budget_usd` is the limit of the whole service.
    """

    def store() -> dict[str, str]:
        return {"run_id": _store(session, draft, run_id or uuid7(now), now, daily_budget_usd).id}

    return str(answer_once(session, idempotency, now, store)["run_id"])


def enqueue_again(
    session: Session, old: ContainerRun, draft: Draft, *, now: datetime, daily_budget_usd: float | None
) -> str | None:
    """Queue a run that keeps the results and paid answers of an ended run and redoes the rest; None if nothing is left to
    do.

    `draft` comes from `draft_again`. Raises `PriceUnknown`, as `enqueue` does.
    """
    redone = [outcome.value for outcome in NOT_THE_MODELS_FAULT]
    if old.kind == RunKind.COMMAND and old.status == Status.FAILED:  # a failed repeat measured nothing
        redone = [outcome.value for outcome in Outcome if outcome is not Outcome.PASSED]
    counts = item_queries.outcome_counts(session, old.id)
    unknown = old.kind == RunKind.HARNESS and old.status != Status.COMPLETED  # how many items it would have had
    if not unknown and old.items_total == old.items_done and not any(counts.get(outcome) for outcome in redone):
        return None
    new = _store(session, draft, uuid7(now), now, daily_budget_usd)
    item_queries.copy(session, old.id, new.id, without=redone)
    item_queries.copy_answers(session, old.id, new.id, without=item_queries.unreadable_judgements(session, old.id))
    given_queries.copy(session, old.id, new.id)
    outcomes = item_queries.outcome_counts(session, new.id)
    new.items_done, new.items_passed = sum(outcomes.values()), outcomes.get("passed", 0)
    session.add(new)
    if new.batch_id is not None:
        archive_queries.batch_changed(session, new.batch_id, now)
    return new.id


def _store(session: Session, draft: Draft, run_id: str, now: datetime, daily_budget_usd: float | None) -> ContainerRun:
    task, actor = with_judges(session, draft.task), acting_in(session)
    run = ContainerRun(
        id=run_id,
        kind=draft.task.kind,
        benchmarks=[part.name for part in draft.task.benchmarks],
        items_total=draft.items,
        created_at=now,
        name=draft.labels.name,
        tags=list(draft.labels.tags),
        note=draft.labels.note,
        author=actor.name if actor else None,
        **{name: getattr(draft, name) for name in _FROM_DRAFT if name != "task"},
        task=task,
    )
    for judge in judge_models(session, task.benchmarks).values():
        check_price(session, run, judge, daily_budget_usd)
    model = None
    if draft.model_id is not None:
        is_new = isinstance(draft, Benchmark | Harness) and draft.retry_of is None  # a retry may use an archived model
        model = (model_queries.lock if is_new else model_queries.get)(session, draft.model_id)
        if model is None:
            raise NotFound(f"there is no model {draft.model_id!r}; GET /api/models lists the existing ones")
        if run.kind in ASKING_KINDS:
            check_price(session, run, model, daily_budget_usd)
    session.add(run)
    session.flush()
    data: dict[str, str | None] = {"model": model_name(run.kind, model.slug if model else None)}
    if draft.trigger_type == RETRY and not isinstance(draft, EvalJob):
        data = {"retry_of": draft.retry_of}
    event_queries.append(session, "created", now, run_id=run.id, data={**data, "status": run.status})
    return run


ASKING_KINDS = frozenset({RunKind.BENCHMARK, RunKind.HARNESS, RunKind.EVAL_GENERATE})


class PriceUnknown(Invalid):
    """The run has a budget or a spending limit, but its model has no known price."""


def check_price(session: Session, run: ContainerRun, model: LlmModel, daily_budget_usd: float | None) -> None:
    """Raises `PriceUnknown` if the run cannot ask this model. Call it before the run is stored."""
    if model.input_price is not None and model.output_price is not None:
        return
    limit = limit_on(session, run.budget_usd, run.user_id, daily_budget_usd, workspace_id=run.workspace_id)
    if limit is not None:
        raise PriceUnknown(_sentence(limit, model, of_run=run.budget_usd is not None))


def check_price_of_schedule(
    session: Session, model: LlmModel, budget_usd: float | None, user_id: int | None, daily_budget_usd: float | None
) -> None:
    """Like `check_price`, for the runs that a schedule will create."""
    if model.input_price is not None and model.output_price is not None:
        return
    limit = limit_on(session, budget_usd, user_id, daily_budget_usd)
    if limit is not None:
        raise PriceUnknown(_sentence(limit, model, of_run=budget_usd is not None))


def limit_on(
    session: Session,
    budget_usd: float | None,
    user_id: int | None,
    daily_budget_usd: float | None,
    *,
    workspace_id: int | None = None,
) -> str | None:
    """The spending limit that applies to a run, in words; None if there is none."""
    actor = acting_in(session)
    workspace_id = actor.workspace_id if actor else workspace_id
    user_id = user_id or (actor.user_id if actor else None)
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


def _sentence(limit: str, model: LlmModel, *, of_run: bool) -> str:
    missing = [name for name in ("input_price", "output_price") if getattr(model, name) is None]
    options = " ".join(f"--{name.replace('_', '-')} USD" for name in missing)
    how = f"PATCH /api/models/{model.id}, or `benchyard models set {model.slug} {options}`"
    other = ", or leave the budget out" if of_run else ""
    return (
        f"{limit}, which cannot be enforced: the price of {model.slug} is not known; enter {' and '.join(missing)} in US "
        f"dollars per million tokens, 0 if it is free ({how}){other}"
    )
