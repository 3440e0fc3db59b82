"""Queries on item results. Each item has one accepted result: the first one stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import case, func, insert, literal
from sqlalchemy import select as sa_select
from sqlalchemy.orm import defer
from sqlmodel import Session, col, select

from orchestrator.db.insert_once import insert_once
from orchestrator.gateway.ledger.tables import GatewayCall
from orchestrator.runs.tables import ItemRow


def insert_new(session: Session, row: ItemRow) -> bool:
    """Store a result unless the item already has one; returns whether it was stored."""
    return insert_once(session, row)


def page(
    session: Session, run_id: str, *, limit: int, after: int | None = None, outcome: str | None = None
) -> Sequence[ItemRow]:
    """Results in plan order, without the large column."""
    query = select(ItemRow).where(ItemRow.run_id == run_id).options(defer(ItemRow.data))  # type: ignore[arg-type]
    if after is not None:
        query = query.where(col(ItemRow.position) > after)
    if outcome is not None:
        query = query.where(ItemRow.outcome == outcome)
    return session.exec(query.order_by(col(ItemRow.position)).limit(limit)).all()


def whole_page(session: Session, run_id: str, *, limit: int, after: int) -> Sequence[ItemRow]:
    """Results in plan order, with everything that the runner sent."""
    query = select(ItemRow).where(ItemRow.run_id == run_id, col(ItemRow.position) > after)
    return session.exec(query.order_by(col(ItemRow.position)).limit(limit)).all()


def both_verdicts(session: Session, run_id: str) -> list[tuple[str, str, int, str, str | None, float | None]]:
    """(benchmark, problem, sample, outcome, parity outcome, score) of every item, in plan order."""
    columns: Any = (
        ItemRow.benchmark,
        ItemRow.problem_id,
        ItemRow.sample_index,
        ItemRow.outcome,
        ItemRow.parity_outcome,
        ItemRow.score,
    )
    query = select(*columns).where(ItemRow.run_id == run_id).order_by(col(ItemRow.position))
    return [tuple(row) for row in session.exec(query).all()]


def first(session: Session, run_id: str) -> ItemRow | None:
    """The first result of a run, with all columns."""
    return session.exec(select(ItemRow).where(ItemRow.run_id == run_id).order_by(col(ItemRow.position)).limit(1)).first()


def judged(session: Session, run_id: str) -> list[tuple[int, str, str, int, str | None, str, str | None, float | None]]:
    """(position, benchmark, problem, sample, digest of the answer, outcome, parity outcome, score), in plan order."""
    columns: Any = (
        ItemRow.position,
        ItemRow.benchmark,
        ItemRow.problem_id,
        ItemRow.sample_index,
        ItemRow.answer_digest,
        ItemRow.outcome,
        ItemRow.parity_outcome,
        ItemRow.score,
    )
    query = select(*columns).where(ItemRow.run_id == run_id).order_by(col(ItemRow.position))
    return [tuple(row) for row in session.exec(query).all()]


def each_whole(session: Session, run_id: str, *, after: int, take: Callable[[ItemRow], bool]) -> None:
    """Pass results to `take` in plan order, one in memory at a time, until it returns False."""
    query = select(ItemRow).where(ItemRow.run_id == run_id, col(ItemRow.position) > after)
    rows = session.exec(query.order_by(col(ItemRow.position)), execution_options={"stream_results": True, "yield_per": 1})
    for row in rows:
        session.expunge(row)
        if not take(row):
            break
    rows.close()


def last_position(session: Session, run_id: str) -> int:
    """The highest position of a run's results; -1 if there is none."""
    position = session.exec(select(func.max(ItemRow.position)).where(ItemRow.run_id == run_id)).first()
    return -1 if position is None else int(position)


def at(session: Session, run_id: str, position: int) -> ItemRow | None:
    """The result at a position of the plan, with all columns."""
    return session.exec(select(ItemRow).where(ItemRow.run_id == run_id, ItemRow.position == position)).first()


def of_problem(session: Session, run_id: str, benchmark: str, problem_id: str, sample_index: int) -> ItemRow | None:
    """The result of one problem and sample, with all columns."""
    return session.get(ItemRow, (run_id, benchmark, problem_id, sample_index))


def keys(session: Session, run_id: str) -> list[tuple[str, str, int]]:
    query = select(ItemRow.benchmark, ItemRow.problem_id, ItemRow.sample_index).where(ItemRow.run_id == run_id)
    return [(benchmark, problem_id, index) for benchmark, problem_id, index in session.exec(query).all()]


def verdicts(session: Session, run_id: str) -> list[tuple[str, str, int, str, float | None]]:
    """(benchmark, problem, sample, outcome, score) of every item, without the large columns."""
    columns: Any = (ItemRow.benchmark, ItemRow.problem_id, ItemRow.sample_index, ItemRow.outcome, ItemRow.score)
    query = select(*columns).where(ItemRow.run_id == run_id).order_by(col(ItemRow.position))
    return [tuple(row) for row in session.exec(query).all()]


def outcome_counts(session: Session, run_id: str) -> dict[str, int]:
    query = select(ItemRow.outcome, func.count()).where(ItemRow.run_id == run_id).group_by(ItemRow.outcome)
    return {outcome: int(count) for outcome, count in session.exec(query).all()}


def counts_by_benchmark(session: Session, run_id: str) -> dict[str, dict[str, int]]:
    """The number of items by benchmark and outcome."""
    columns: Any = (ItemRow.benchmark, ItemRow.outcome, func.count())
    query = select(*columns).where(ItemRow.run_id == run_id).group_by(col(ItemRow.benchmark), col(ItemRow.outcome))
    counts: dict[str, dict[str, int]] = {}
    for benchmark, outcome, count in session.exec(query).all():
        counts.setdefault(benchmark, {})[outcome] = int(count)
    return counts


def outcome_details(session: Session, run_id: str, *, limit: int = 100) -> list[tuple[str, str, int]]:
    """(outcome, detail, number of items), the most frequent first."""
    number = func.count()
    query = (
        select(ItemRow.outcome, ItemRow.detail, number)
        .where(ItemRow.run_id == run_id)
        .group_by(col(ItemRow.outcome), col(ItemRow.detail))
        .order_by(number.desc(), col(ItemRow.detail))
        .limit(limit)
    )
    return [(outcome, detail, int(count)) for outcome, detail, count in session.exec(query).all()]


def prompt_versions(session: Session, run_id: str, benchmarks: Sequence[str]) -> dict[str, str]:
    """The prompt version of each benchmark, taken from its first item that counts."""
    versions = {}
    for name in benchmarks:
        query = (
            select(ItemRow)
            .where(
                ItemRow.run_id == run_id,
                ItemRow.benchmark == name,
                col(ItemRow.outcome).not_in(("provider_error", "infra_error")),
            )
            .order_by(col(ItemRow.position))
            .limit(1)
        )
        row = session.exec(query).first()
        versions[name] = str(row.data.get("prompt_version") or "") if row is not None else ""
    return versions


def copy(session: Session, source: str, target: str, *, without: Sequence[str]) -> int:
    """Copy the results of `source` to `target`, except those whose outcome is in `without`."""
    columns = [c.name for c in ItemRow.__table__.columns]  # type: ignore[attr-defined]
    sources: list[Any] = [literal(target) if name == "run_id" else getattr(ItemRow, name) for name in columns]
    query = sa_select(*sources).where(col(ItemRow.run_id) == source, col(ItemRow.outcome).not_in(without))
    return int(session.connection().execute(insert(ItemRow).from_select(columns, query)).rowcount)


MAX_UNREADABLE = 1000


def unreadable_judgements(session: Session, run_id: str) -> list[str]:
    """The keys of calls in which the judge gave no verdict: they are not worth repeating."""
    query = select(ItemRow).where(ItemRow.run_id == run_id, ItemRow.outcome == "infra_error").limit(MAX_UNREADABLE)
    return [
        str(judgement["call_key"])
        for row in session.exec(query)
        for judgement in row.data.get("judgements") or []
        if judgement.get("worth") is None
    ]


def tokens_of_calls(session: Session, run_id: str) -> tuple[int, int]:
    """Input and output tokens of all answered calls of a run, for runs whose items do not name their calls."""
    columns: Any = (func.sum(GatewayCall.input_tokens), func.sum(GatewayCall.output_tokens))
    query = select(*columns).where(GatewayCall.run_id == run_id, GatewayCall.state == "settled")
    asked, answered = session.exec(query).one()
    return int(asked or 0), int(answered or 0)


def copy_answers(session: Session, source: str, target: str, *, without: Sequence[str] = ()) -> int:
    """Copy the paid answers of `source` to `target`, so that they are not bought again, except those with the keys in
    `without`."""
    columns = [c.name for c in GatewayCall.__table__.columns]  # type: ignore[attr-defined]
    free = {
        "run_id": literal(target),
        "cost_usd": literal(0.0),
        "reserved_usd": literal(0.0),
        "priced": literal(True),
        "source": case((col(GatewayCall.source) == "bought", "replayed"), else_=col(GatewayCall.source)),
        "from_run": func.coalesce(col(GatewayCall.from_run), col(GatewayCall.run_id)),
        "from_key": func.coalesce(col(GatewayCall.from_key), col(GatewayCall.call_key)),
    }
    sources: list[Any] = [free.get(name, getattr(GatewayCall, name)) for name in columns]
    query = sa_select(*sources).where(
        col(GatewayCall.run_id) == source, col(GatewayCall.state) == "settled", col(GatewayCall.call_key).not_in(without)
    )
    return int(session.connection().execute(insert(GatewayCall).from_select(columns, query)).rowcount)
