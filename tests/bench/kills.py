"""Nothing is paid twice, at full size: 200 items, the runner killed 10 times and the orchestrator 5 times at random moments.

    .venv/bin/python -m tests.bench.kills [TIMES] [SEED] [postgresql]

The ledger is in SQLite, or in a PostgreSQL server that is started for it. Needs Docker and the runner image.
Ends with an error when a run does not complete, or an answer was bought twice that was
not under way when the orchestrator was killed.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from contextlib import closing, nullcontext
from pathlib import Path

from tests.faults.counting_provider import CountingProvider
from tests.faults.killing import kill_a_lot
from tests.faults.service import Service
from tests.postgres_from_wheel import PostgresFromWheel


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    print("seed         attempts   call keys   calls at the provider   under way at a kill (counted as lost)   seconds")
    with closing(PostgresFromWheel()) if sys.argv[3:] == ["postgresql"] else nullcontext() as server:
        if server is not None:
            server.start()
        for number in range(seed, seed + times):
            with tempfile.TemporaryDirectory() as directory:
                once(Path(directory), number, None if server is None else server.url(server.create()))


def once(directory: Path, seed: int, database_url: str | None) -> None:
    began = time.monotonic()
    with CountingProvider(directory / "provider.log", latency_s=0.4) as provider:
        os.environ |= {"OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": "bench"}
        service = Service(directory / "data", database_url=database_url, lease_s=5, suspect_s=3)
        try:
            service.start()
            bought = kill_a_lot(
                service, provider, database_url, random.Random(seed),
                problems=20, samples=10, concurrency=4, runner_kills=10, orchestrator_kills=5,
            )  # fmt: skip
        finally:
            service.close()
    print(
        f"{seed:<12} {bought.run['attempt']:8} {bought.keys:11} {bought.calls:23} {bought.lost:38} "
        f"{time.monotonic() - began:9.0f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
