"""REST for the benchmarks of this installation."""

from __future__ import annotations

import asyncio
from datetime import date

from orchestrator.http.context import Context
from orchestrator.http.policy import READ, Policy, Router
from orchestrator.http.schemas import Answer, Page

router = Router(prefix="/api/benchmarks", tags=["benchmarks"])


class BenchmarkOut(Answer):
    name: str
    adapter: str
    pack_digest: str
    problems: int
    difficulties: dict[str, int]
    first_date: date | None
    last_date: date | None
    description: str
    licence: str
    source: str
    default: bool


@router.get("", policy=Policy(READ))
async def list_benchmarks(context: Context) -> Page[BenchmarkOut]:
    infos = await asyncio.to_thread(context.catalogue.benchmarks)
    default = await asyncio.to_thread(context.catalogue.default_benchmark)
    names = BenchmarkOut.model_fields.keys() - {"first_date", "last_date", "default"}
    items = []
    for info in infos:
        first, last = info.window or (None, None)
        fields = {name: getattr(info, name) for name in names}
        items.append(BenchmarkOut(**fields, first_date=first, last_date=last, default=info.name == default))
    return Page(items=items)
