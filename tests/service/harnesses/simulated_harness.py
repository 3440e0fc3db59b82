"""A runner that reports the items that a test says, for runs of harnesses on the fake engine."""

from __future__ import annotations

import asyncio
from typing import Any

from orchestrator.engines.fake.container import FakeContainer
from tests.served import RunnerClient

HARNESS: dict[str, Any] = {
    "image": "inspect:1",
    "name": "sums",
    "command": ["inspect", "eval", "sums.py"],
    "files": [{"name": "sums.py", "content": "print(1)"}],
    "results": {"format": "inspect"},
}


class SimulatedHarness:
    """Its items are `prefix/0`, `prefix/1` and so on; those from `passing` on are wrong."""

    def __init__(self, count: int = 40, passing: int = 40) -> None:
        self.count, self.passing, self.prefix = count, passing, "sums"
        self.go_on = asyncio.Event()
        """A harness stops after its first item until this is set."""
        self.go_on.set()
        self.models: list[str] = []

    async def __call__(self, container: FakeContainer) -> int:
        runner = RunnerClient(container.boot_line, container.container_id[-12:])
        try:
            await runner.claim()
            self.models.append(runner.spec["model"]["name"])
            await runner.send(runner.next("stage", stage="running", facts={"image_id": "sha256:1"}))
            for number in range(self.count):
                item = {
                    "benchmark": runner.spec["harness"]["name"],
                    "problem_id": f"{self.prefix}/{number}",
                    "outcome": "passed" if number < self.passing else "wrong_answer",
                    "answer": "4",
                }
                await runner.send(runner.next("progress", item=item))
                await self.go_on.wait()
            await runner.send(runner.next("complete"))
            return 0
        finally:
            await runner.close()
