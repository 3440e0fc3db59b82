"""A runner whose results look like those of a real one: models of different strength, each kind of failure, thinking."""

from __future__ import annotations

import asyncio
import json
import math
from datetime import datetime
from typing import Any

from orchestrator.engines.fake.container import FakeContainer
from runner.contract.run_spec import CALL_KEY_HEADER, call_key
from tests.bench.pictures.problems import hardness
from tests.bench.pictures.provider import output_tokens, spread
from tests.manual_clock import ManualClock
from tests.served import RunnerClient
from tests.service.dashboard.stepwise_runner import Hold
from tests.service.evals.eval_runner import EvalRunner

STRENGTH = {"atlas-large": 1.9, "atlas-small": 0.3, "quartz-2": 1.3, "heron-70b": 0.0, "demo-strong": 1.6, "demo-weak": -0.3}
FORGETS = "atlas-large"
FAILURES = [
    ("wrong_answer", 0.56), ("time_limit", 0.16), ("runtime_error", 0.13), ("truncated", 0.05), ("memory_limit", 0.04),
    ("no_answer", 0.03), ("refused", 0.03),
]  # fmt: skip
CODE = '''import sys
from functools import lru_cache


def solve(values: list[int], k: int) -> int:
    """Counts the good indices in one pass."""
    total, low, high, good = 0, values[0], values[0], 0
    for value in values:  # prefix by prefix
        total = (total + value) % k
        low, high = min(low, value), max(high, value)
        if total == 0 and high < 2 * low:
            good += 1
    return good


def main() -> None:
    n, k = map(int, sys.stdin.readline().split())
    print(solve(list(map(int, sys.stdin.readline().split()))[:n], k))


main()
'''
THINKING = """The condition has two parts, and both can be kept while the prefix grows.

1. The sum modulo $k$ is a running value: $s_i = (s_{i-1} + a_i) \\bmod k$.
2. For the second part the minimum and the maximum of the prefix are enough. Once $\\max \\ge 2 \\cdot \\min$, no longer
   prefix can be good, so the loop could even stop there.

Let me check with the example: 3 1 / 2 3 4 gives 2, then 2 + 3 = 5, then 9. All are 0 modulo 1. The ratios are 1, 1.5 and
2: the third is not below 2. So the answer is 2.

I should be careful with reading the input: the numbers may be spread over several lines.
"""
TRACEBACK = """Traceback (most recent call last):
  File "/work/solution.py", line 22, in <module>
    main()
  File "/work/solution.py", line 19, in main
    print(solve(list(map(int, sys.stdin.readline().split()))[:n], k))
  File "/work/solution.py", line 7, in solve
    total, low, high, good = 0, values[0], values[0], 0
IndexError: list index out of range
"""
HARDNESS = hardness()


class LabRunner:
    """The behaviour of all containers. From `forgets_at` on, one model no longer solves a third of what it solved."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.hold = Hold()
        self.pause_s = 0.0
        self.forgets_at: datetime | None = None
        self.refuses: str | None = None
        self.out_of_memory = False

    async def __call__(self, container: FakeContainer) -> int:
        runner = RunnerClient(container.boot_line, container.container_id[-12:])
        try:
            if (await runner.claim()).status_code != 200:
                return 3
            kind = runner.spec["kind"]
            if kind in ("eval_generate", "eval_execute"):
                return await EvalWork().go(runner, container)
            return await self._measure(runner, container)
        finally:
            await runner.close()

    async def _measure(self, runner: RunnerClient, container: FakeContainer) -> int:
        began = self.clock.now()
        container.write(b"runner: sandbox ready, Python 3.13.7\n")
        facts = {"python": "3.13.7", "kernel": "6.8.0-52-generic", "cpu": "AMD EPYC 9354", "sandbox": "namespaces, seccomp"}
        await self._send(runner, began, runner.next("stage", stage="running", facts=facts))
        if self.refuses:
            await self._send(runner, began, runner.next("failed", reason="provider_error", message=self.refuses))
            return 1
        items = runner.open_items()
        step = min(runner.spec.get("concurrency") or 4, 8)
        done = 0
        for start in range(0, len(items), step):
            await container.checkpoint()
            if self.out_of_memory and start:
                container.end(137, self.clock.now(), oom=True)
                return 137
            while self.hold.stops(start):
                await asyncio.gather(*(self._ask(runner, item) for item in items[start : start + step]))
                await asyncio.sleep(3600)
            await asyncio.sleep(self.pause_s)
            part = items[start : start + step]
            refused = await asyncio.gather(*(self._ask(runner, item) for item in part))
            events = [
                runner.next("progress", item=self._result(runner, item))
                for item, why in zip(part, refused, strict=True)
                if why is None
            ]
            if events:
                answer = await self._send(runner, began, *events)
                done += len(events)
                if answer["desired"] == "cancel":
                    return 0
            if why := next(filter(None, refused), None):
                await self._send(runner, began, runner.next("failed", reason="budget_exhausted", message=why))
                return 1
            if start % (4 * step) == 0:
                message = f"{start + len(part)} of {len(items)} items done"
                await self._send(runner, began, runner.next("log", message=message))
        await self._send(runner, began, runner.next("complete"))
        return 0

    async def _send(self, runner: RunnerClient, began: datetime, *events: dict[str, Any]) -> dict[str, Any]:
        at = (self.clock.now() - began).total_seconds()
        memory = int((180 + 120 * math.sin(at / 9) + 60 * spread(at)) * (1 << 20))
        usage = [{"at_s": at, "cpu_s": 0.31 * at, "memory_bytes": memory, "throttled_s": 0.02 * at}]
        body = {"attempt": runner.spec["attempt"], "events": list(events), "usage": usage}
        answer = await runner.http.post(f"/runner/runs/{runner.spec['run_id']}/events", json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def _ask(self, runner: RunnerClient, item: dict[str, Any]) -> str | None:
        """Why no further call is allowed."""
        model, key = runner.spec["model"], call_key(item["benchmark"], item["problem_id"], item["sample_index"])
        body = {"model": model["name"], "messages": [{"role": "user", "content": key}], "max_tokens": 8192}
        url = f"/gateway/{model['provider']}/v1/chat/completions"
        if model["protocol"] == "anthropic":
            url = f"/gateway/{model['provider']}/v1/messages"
        answer = await runner.http.post(url, json=body, headers={CALL_KEY_HEADER: key})
        if answer.status_code == 402:
            found = answer.json()
            return str(found.get("detail") or found.get("error", {}).get("message"))
        return None

    def _outcome(self, runner: RunnerClient, item: dict[str, Any]) -> str:
        model, problem = runner.spec["model"]["name"], item["problem_id"]
        day = self.clock.now().date().isoformat()
        odds = STRENGTH.get(model, 0.0) - HARDNESS.get(problem, spread(problem) * 3 - 1.5)
        luck = 0.94 * spread(model, problem) + 0.06 * spread(model, problem, day, item["sample_index"])
        passed = luck < 1 / (1 + math.exp(-1.5 * odds))
        if self.forgets_at and model == FORGETS and self.clock.now() >= self.forgets_at:
            passed = passed and spread("forgotten", problem) > 0.27
        if spread(model, problem, day, "overloaded") < 0.001:
            return "provider_error"
        if passed:
            return "passed"
        left = spread(model, problem, "how")
        for outcome, share in FAILURES:
            left -= share
            if left < 0:
                return outcome
        return "wrong_answer"

    def _result(self, runner: RunnerClient, item: dict[str, Any]) -> dict[str, Any]:
        outcome = self._outcome(runner, item)
        model, problem = runner.spec["model"]["name"], item["problem_id"]
        out = output_tokens(model, call_key(item["benchmark"], problem, item["sample_index"]))
        ran = outcome not in ("truncated", "no_answer", "refused", "provider_error")
        first = 1 + int(6 * spread(model, problem, "first"))
        tests = [_test(n, "passed", problem) for n in range(first)] + [_test(first, outcome, problem)]
        total = 18
        call = {
            "call_key": call_key(item["benchmark"], problem, item["sample_index"]),
            "input_tokens": 420 + out // 7, "output_tokens": out, "reasoning_tokens": int(out * 0.7),
            "latency_s": round(0.4 + out / 70, 2), "finish_reason": "length" if outcome == "truncated" else "stop",
        }  # fmt: skip
        passed = outcome == "passed"
        return {
            **item,
            "outcome": outcome,
            "parity_outcome": "passed" if not passed and spread(model, problem, "parity") < 0.06 else outcome,
            "detail": _detail(outcome, first, total),
            "prompt": "You are an expert Python programmer. Solve this problem:\n\n" + 12 * f"The statement of {problem}. ",
            "prompt_version": "livecodebench-1",
            "thinking": THINKING,
            "answer": f"Both conditions can be kept while the prefix grows.\n\n```python\n{CODE}```\n\nIt runs in $O(n)$.",
            "code": CODE if ran else None,
            "extraction_rule": "last fenced block" if ran else "",
            "tests_total": total if ran else 0,
            "tests_passed": (total if passed else first) if ran else 0,
            "tests": ([_test(n, "passed", problem) for n in range(total)] if passed else tests) if ran else [],
            "usage": {"cpu_s": 0.04 + 2 * spread(problem) ** 3, "wall_s": 0.3 + 2 * spread(problem) ** 3,
                      "peak_bytes": int((14 + 90 * spread(problem, "m") ** 4) * (1 << 20))},
            "exit": "exit 1" if outcome == "runtime_error" else "exit 0",
            "fragile": passed and spread(problem, "fragile") < 0.04,
            "calls": [call],
        }  # fmt: skip


def _test(number: int, outcome: str, problem: str) -> dict[str, Any]:
    found: dict[str, Any] = {"index": number, "outcome": outcome}
    seconds = 10.0 if outcome == "time_limit" else 0.02 + 0.05 * spread(problem, number)
    found["usage"] = {"cpu_s": seconds, "wall_s": seconds * 1.1, "peak_bytes": (11 + number) << 20}
    if outcome == "passed":
        return found
    found["input"] = "12 7\n" + " ".join(str(int(1e6 * spread(problem, n))) for n in range(12)) + "\n"
    if outcome == "wrong_answer":
        lines = [f"Case #{n}: {int(1000 * spread(problem, 'c', n))}" for n in range(9)]
        found["expected"] = "\n".join(lines) + "\n"
        found["got"] = "\n".join(line if n != 4 else line[:-1] + "7" for n, line in enumerate(lines)) + "\n"
    if outcome == "runtime_error":
        found["stderr"] = TRACEBACK
    return found


def _detail(outcome: str, first: int, total: int) -> str:
    return {
        "passed": f"all {total} tests accepted",
        "wrong_answer": f"test {first + 1} of {total}: not the expected answer, line 5",
        "time_limit": f"test {first + 1} of {total}: more than 10 s of processor time",
        "runtime_error": f"test {first + 1} of {total}: IndexError: list index out of range",
        "memory_limit": f"test {first + 1} of {total}: more than 1 GiB of memory",
        "truncated": "the answer ended at the limit of 8192 tokens",
        "no_answer": "no code block in the answer",
        "refused": "the model declined to answer",
        "provider_error": "the provider answered 529 five times: overloaded",
    }[outcome]


class EvalWork(EvalRunner):
    """Jobs about evals, for a runner that has claimed its run."""

    async def go(self, runner: RunnerClient, container: FakeContainer) -> int:
        self.spec = runner.spec
        answer = await runner.http.get(f"/runner/runs/{runner.spec['run_id']}/traces")
        self.lines = [json.loads(line) for line in answer.content.splitlines()]
        if runner.spec["kind"] == "eval_generate":
            await self._generate(runner)
        else:
            await self._execute(runner, container)
        return 0
