"""Quotes and machine costs as shown by the REST API and the pages."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from sqlmodel import Session

from orchestrator.costs import queries as machine_queries
from orchestrator.costs.quote import (
    JudgeQuote,
    PastRun,
    Quote,
    Range,
    judge_quote,
    judge_sentence,
    quote,
    sentence,
    with_judges,
)
from orchestrator.costs.schemas import (
    IdleCostOut,
    JudgeQuoteOut,
    MachineBy,
    MachineCostOut,
    MachineCostsOut,
    QuoteOut,
    RangeOut,
)
from orchestrator.datasets.catalogue import Catalogue
from orchestrator.gateway.ledger import report_queries as call_reports
from orchestrator.gateway.ledger.prices import Prices
from orchestrator.gateway.model_prices import prices_of
from orchestrator.gateway.provider_batches.lots import at_batch_prices
from orchestrator.http.context import Services
from orchestrator.models.tables import LlmModel
from orchestrator.prices.age import age_warning
from orchestrator.retention import queries as retention_queries
from orchestrator.runs.queueing.drafts import Benchmark, BenchmarkTask, PlannedBenchmark, item_count
from orchestrator.runs.queueing.judges import find_judge
from orchestrator.runs.queueing.model_specs import max_tokens_of
from orchestrator.runs.queueing.plan import turns_of
from orchestrator.runs.reports.machine_cost import Rates
from orchestrator.runs.schemas import RunCreate
from orchestrator.runs.warm_pool import queries as pool_queries
from orchestrator.settings import Settings

MOST_PAST_RUNS = 10
LOOKED_AT = 20
"""Number of prompts measured per benchmark."""
PROMPT_FIELDS = ("question_content", "starter_code", "prompt", "question", "text", "options")
JUDGE_FRAME_BYTES = 1500
"""Approximate size of the fixed text around what a judge is asked."""
BATCH = "At the price of the provider's batches, which may take a day longer."
PROMPT_FRAME_BYTES = 800
"""Approximate size of the text that an adapter adds around a problem."""


async def quote_view(context: Services, body: RunCreate) -> QuoteOut:
    draft = await context.runs.draft(body.request(context.settings.reuse_answers))
    model = await context.runs.find_model(body.model_id)
    names = [part.name for part in draft.task.benchmarks]
    prompt_bytes = await asyncio.to_thread(_prompt_size, context.catalogue, draft.task)
    rows = await context.db.read(lambda session: call_reports.past_runs(session, model.id or 0))
    prices = _quoted_prices(context, draft, model)
    estimate = quote(
        items=_items_by_turns(draft),
        concurrency=draft.concurrency,
        prompt_bytes=prompt_bytes,
        max_output_tokens=max_tokens_of(model, draft.task.params),
        prices=prices,
        past=_past(rows, names),
    )
    judges = await _judge_quotes(context, draft, max_tokens_of(model, draft.task.params), rows)
    total = with_judges(estimate, judges)
    warning = age_warning(model.prices_entered_at, context.clock.now(), free=model.is_free) if prices is not None else None
    promise = budget_promise(context, model, draft.concurrency)
    facts = (total, model.slug, names, draft.items, judges)
    return _out(*facts, priced=prices is not None, batch=draft.batch, warning=warning, promise=promise)


def _items_by_turns(draft: Benchmark) -> Mapping[int, int]:
    """How many items may take how many turns."""
    items: Counter[int] = Counter()
    for part in draft.task.benchmarks:
        items[turns_of(part)] += item_count([part], draft.samples_per_problem)
    return items


def _quoted_prices(context: Services, draft: Benchmark, model: LlmModel) -> Prices | None:
    prices = prices_of(model)
    return at_batch_prices(prices, Decimal(str(context.settings.batch_price_share))) if draft.batch else prices


async def _judge_quotes(context: Services, draft: Benchmark, answer_tokens: int, rows: Sequence[Any]) -> list[JudgeQuote]:
    """One for each benchmark that a model judges. Earlier runs count only if they were of that benchmark alone."""
    quotes = []
    for part in draft.task.benchmarks:
        judge = await context.db.read(lambda session, part=part: find_judge(session, part))  # type: ignore[misc]
        if judge is None:
            continue
        size = await asyncio.to_thread(_judge_prompt_size, context.catalogue, part)
        alone = [row for row in rows if row.benchmarks == [part.name] and row.judge_cost_usd]
        quotes.append(
            judge_quote(
                model=judge.slug,
                items=item_count([part], draft.samples_per_problem),
                samples=part.judge_samples,
                prompt_bytes=size,
                answer_tokens=answer_tokens,
                max_output_tokens=max_tokens_of(judge),
                prices=_quoted_prices(context, draft, judge),
                past_usd_per_item=[row.judge_cost_usd / row.items_done for row in alone[:MOST_PAST_RUNS]],
            )
        )
    return quotes


def _judge_prompt_size(catalogue: Catalogue, part: PlannedBenchmark) -> int:
    """The mean size of what the judge is asked, without the answer."""
    sizes = [
        JUDGE_FRAME_BYTES + sum(len(str(record.get(name) or "").encode()) for name in ("question", "rubric", "target"))
        for record in catalogue.records(part.name, _some(part.problem_ids))
    ]
    return sum(sizes) // max(1, len(sizes))


def _some(ids: Sequence[str]) -> Sequence[str]:
    return ids[:: max(1, len(ids) // LOOKED_AT)][:LOOKED_AT]


def _prompt_size(catalogue: Catalogue, task: BenchmarkTask) -> int:
    """The mean prompt size, from a few of the prompts."""
    sizes: list[int] = []
    for part in task.benchmarks:
        sizes += [_prompt_bytes(record) for record in catalogue.records(part.name, _some(part.problem_ids))]
    return sum(sizes) // max(1, len(sizes))


def _prompt_bytes(record: dict[str, Any]) -> int:
    return PROMPT_FRAME_BYTES + sum(len(str(record.get(name) or "").encode()) for name in PROMPT_FIELDS)


def _past(rows: Sequence[Any], names: Sequence[str]) -> list[PastRun]:
    same = [row for row in rows if sorted(row.benchmarks) == sorted(names) and row.started_at and row.completed_at]
    return [
        PastRun(
            items=row.items_done,
            concurrency=row.concurrency,
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
            seconds=(row.completed_at - row.started_at).total_seconds(),
        )
        for row in same[:MOST_PAST_RUNS]
    ]


def budget_promise(context: Services, model: LlmModel, concurrency: int) -> str | None:
    """What a budget can promise for this model, if its server ignores the token limit; None if it keeps it."""
    provider = context.providers.service.directory.current.get(model.provider)
    learned = None if provider is None else context.providers.book.of(provider, model.name)
    if learned is None or not learned.ignored_limit:
        return None
    return (
        f"Its server ignores the token limit (up to {learned.most_over:.1f} times as many tokens were seen), so each call "
        "is reserved at that size; a budget still ends the run, but the calls that are under way then "
        f"(at most {concurrency}) may exceed it."
    )


def _range(span: Range | None) -> RangeOut | None:
    return None if span is None else RangeOut(low=span.low, expected=span.expected, high=span.high)


def _out(
    estimate: Quote,
    slug: str,
    names: Sequence[str],
    items: int,
    judges: Sequence[JudgeQuote],
    *,
    priced: bool,
    batch: bool,
    warning: str | None,
    promise: str | None,
) -> QuoteOut:
    notes = [warning, BATCH if batch else None, promise]
    return QuoteOut(
        model=slug,
        benchmarks=list(names),
        items=items,
        turns=estimate.turns,
        source=estimate.source.value,
        runs_used=estimate.runs_used,
        price_known=priced,
        price_warning=warning,
        budget_promise=promise,
        worst_case_usd=estimate.worst_case_usd,
        sentence=" ".join([sentence(estimate, slug, priced=priced), *map(judge_sentence, judges), *filter(None, notes)]),
        cost_usd=_range(estimate.cost_usd),
        seconds=_range(estimate.seconds),
        judges=[
            JudgeQuoteOut(
                model=judge.model,
                calls=judge.calls,
                price_known=judge.worst_case_usd is not None,
                cost_usd=_range(judge.cost_usd),
                worst_case_usd=judge.worst_case_usd,
            )
            for judge in judges
        ],
    )


class MachineUse(NamedTuple):
    key: str
    runs: int
    vcpu_s: float
    gib_s: float
    throttled_s: float


def with_deleted(present: Sequence[Any], deleted: Sequence[Any], *, newest_first: bool) -> list[MachineUse]:
    """Usage of runs, including deleted ones: what was paid for stays counted."""
    sums: dict[str, MachineUse] = {}
    for row in (*present, *deleted):
        before = sums.get(row.key, MachineUse(row.key, 0, 0.0, 0.0, 0.0))
        added = (total + amount for total, amount in zip(before[1:], tuple(row)[1:5], strict=True))
        sums[row.key] = MachineUse(row.key, *added)
    return sorted(sums.values(), key=lambda use: use.key if newest_first else use.vcpu_s, reverse=True)


def rates_of(settings: Settings) -> Rates:
    return Rates(settings.vcpu_hour_usd, settings.gib_hour_usd)


async def machine_costs_view(
    context: Services, *, by: MachineBy = MachineBy.DAY, days: int, limit: int = 200
) -> MachineCostsOut:
    since, rates = context.clock.now() - timedelta(days=days), rates_of(context.settings)

    def read(session: Session) -> list[MachineUse]:
        present = machine_queries.used(session, by.value, since, limit)
        deleted = retention_queries.used_by_deleted(session, by.value, since)
        return with_deleted(present, deleted, newest_first=by is MachineBy.DAY)[:limit]

    used = await context.db.read(read)
    items = [MachineCostOut(**use._asdict(), cost_usd=rates.cost(use.vcpu_s, use.gib_s)) for use in used]
    ready = await context.db.read(lambda session: pool_queries.idle_since(session, since.date().isoformat()))
    idle = [
        IdleCostOut(
            day=row.day,
            instance_type=row.instance_type,
            ready_s=row.ready_s,
            vcpu_s=row.vcpu_s,
            gib_s=row.gib_s,
            cost_usd=rates.cost(row.vcpu_s, row.gib_s),
        )
        for row in ready
    ]
    return MachineCostsOut(
        items=items,
        idle=idle,
        idle_cost_usd=sum(use.cost_usd for use in idle),
        vcpu_hour_usd=rates.vcpu_hour_usd,
        gib_hour_usd=rates.gib_hour_usd,
    )
