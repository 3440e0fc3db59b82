"""A runner for pages: results with texts, tests and calls as a real one sends them, at the pace that a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from orchestrator.engines.fake.container import FakeContainer
from tests.served import RunnerClient

WRONG = 2
CODE = "def solve(n):\n    # a comment\n    return n + 1  # 42\n"


def result(item: dict[str, Any], number: int, text: str = "") -> dict[str, Any]:
    """Every third one is wrong; `text` is put into every field that a model or a program can fill."""
    wrong = number % 3 == WRONG
    failed = {
        "index": 1,
        "outcome": "wrong_answer",
        "input": f"1 2\n{text}",
        "expected": "a\nb\nc\n",
        "got": f"a\nx\n{text}",
    }
    tests = [
        {"index": 0, "outcome": "passed", "usage": {"cpu_s": 0.01, "peak_bytes": 9 << 20}},
        *([failed] if wrong else []),
    ]
    return {
        **item,
        "outcome": "wrong_answer" if wrong else "passed",
        "parity_outcome": "passed",
        "detail": f"test 2 of 2: not the expected answer {text}" if wrong else "all tests accepted",
        "prompt": f"Solve it. {text}",
        "thinking": f"First, the sum of $n$. {text}",
        "prompt_version": "v1",
        "answer": f"Here it is:\n```python\n{CODE}```\n{text}",
        "code": CODE + text,
        "extraction_rule": f"python_block {text}",
        "tests_total": 2,
        "tests_passed": 1 if wrong else 2,
        "tests": tests,
        "usage": {"cpu_s": 0.05, "wall_s": 0.2, "peak_bytes": 20 << 20},
        "exit": f"exit 0 {text}",
        "calls": [
            {"call_key": f"{item['problem_id']}/0", "input_tokens": 100, "output_tokens": 50, "finish_reason": f"stop{text}"}
        ],
    }


class Hold:
    """Stops runners when they have sent `at` items, until it is None again; set from any thread."""

    def __init__(self) -> None:
        self.at: int | None = None

    def stops(self, sent: int) -> bool:
        return self.at is not None and sent >= self.at


def story_runner(
    *, pause_s: float = 0.0, text: str = "", hold: Hold | None = None
) -> Callable[[FakeContainer], Awaitable[int]]:
    async def behaviour(container: FakeContainer) -> int:
        runner = RunnerClient(container.boot_line, container.container_id[-12:])
        try:
            if (await runner.claim()).status_code != 200:
                return 3
            await runner.send(runner.next("stage", stage="running", facts={"python": f"3.13 {text}"[:300]}))
            items = runner.open_items()
            for number, item in enumerate(items):
                await container.checkpoint()
                await asyncio.sleep(pause_s)
                while hold is not None and hold.stops(number):
                    await container.checkpoint()
                    await asyncio.sleep(0.02)
                asked = runner.spec["kind"] != "benchmark" or await runner.ask(
                    item
                )  # a model of the test's own has no server: it is always wrong
                answer = await runner.send(runner.next("progress", item=result(item, number if asked else WRONG, text)))
                if answer.status_code != 200:
                    return 3
                if answer.json()["desired"] == "cancel":
                    return 0
            container.write(f"all done {text}\n".encode())
            done = len(runner.spec["finished"]) + len(items)
            await runner.send(runner.next("log", message=f"all items done {text}"), runner.next("complete", items=done))
            return 0
        finally:
            await runner.close()

    return behaviour
