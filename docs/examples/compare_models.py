"""Measures models on the same problems and says whether they differ: compare_models.py [MODEL MODEL ...]"""

from __future__ import annotations

import asyncio
import sys

from orchestrator.client import AsyncBenchyard
from orchestrator.client.models import RunDetail

PROBLEMS, SEED = 5, 1
"""The same seed chooses the same problems."""


async def measure(client: AsyncBenchyard, model: str) -> RunDetail:
    created = await client.runs.create(model_id=model, sample_size=PROBLEMS, seed=SEED)
    return await client.runs.wait(created.run_id, timeout_s=3600)


async def main(models: list[str]) -> int:
    async with AsyncBenchyard() as client:
        runs = await asyncio.gather(*(measure(client, model) for model in models))
        for run in runs:
            if run.score is None or run.status != "completed":
                print(f"{run.model}: {run.status}, {run.reason}")
                return 1
            print(f"{run.model}: {run.score.estimate:.0%} ({run.score.low:.0%} to {run.score.high:.0%})")
        first, *others = runs
        for run in others:
            compared = await client.runs.comparison(run.id, base=first.id)
            print(f"{run.model} compared with {first.model}: {compared.verdict}, p = {compared.p_value:.3g}")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:] or ["demo-strong", "demo-weak"])))
