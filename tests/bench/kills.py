"""Nothing is paid twice, at full size: 200 items, the runner killed 10 times and the orchestrator 5 times at random moments.

    .venv/bin/python -m tests.bench.kills [TIMES] [SEED]

Needs Docker and the runner image. Ends with an error when a run does not complete, or an answer was bought twice that was
not under way when the orchestrator was killed.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.counting_provider import CountingProvider
from tests.faults.killing import kill_a_lot
from tests.faults.service import Service


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    print("seed         attempts   call keys   calls at the provider   under way at a kill (counted as lost)   seconds")
    for number in range(seed, seed + times):
        with tempfile.TemporaryDirectory() as directory:
            once(Path(directory), number)


def once(directory: Path, seed: int) -> None:
    began = time.monotonic()
    with CountingProvider(directory / "provider.log", latency_s=0.4) as provider:
        os.environ |= {"OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": "bench"}
        service = Service(directory / "data", lease_s=5, suspect_s=3)
        try:
            service.start()
            bought = kill_a_lot(
                service, provider, None, random.Random(seed),
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
