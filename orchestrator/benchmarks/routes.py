"""REST for benchmarks: what can be run here."""

from __future__ import annotations

import asyncio

from orchestrator.benchmarks.schemas import BenchmarkOut
from orchestrator.http.context import Context
from orchestrator.http.policy import READ, Policy, Router
from orchestrator.http.schemas import Page

router = Router(prefix="/api/benchmarks", tags=["benchmarks"])


@router.get("", policy=Policy(READ))
async def list_benchmarks(context: Context) -> Page[BenchmarkOut]:
    infos = await asyncio.to_thread(context.catalogue.benchmarks)
    default = await asyncio.to_thread(context.catalogue.default_benchmark)
    items = [
        BenchmarkOut(
            name=info.name,
            adapter=info.adapter,
            pack_digest=info.pack_digest,
            problems=info.problems,
            difficulties=info.difficulties,
            first_date=info.window[0] if info.window else None,
            last_date=info.window[1] if info.window else None,
            description=info.description,
            licence=info.licence,
            source=info.source,
            default=info.name == default,
        )
        for info in infos
    ]
    return Page(items=items)
