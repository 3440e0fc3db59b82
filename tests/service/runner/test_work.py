"""Items to their outcomes, with everything real but the provider: reporter, problems, SDK, sandbox."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

import httpx
import pytest
from fastapi.responses import JSONResponse, Response

from runner.benchmarks.adapter import ADAPTERS
from runner.contract.run_spec import RunSpec
from runner.errors import RunFailed
from runner.items.problems import Problems
from runner.items.refusals import ALIKE
from runner.items.work import Item, Work, items_of
from runner.llm.calls import Calls
from runner.llm.client import open_client
from runner.log import Log
from runner.reporting.reporter import Reporter
from runner.reporting.truncation import THINKING_CHARS
from runner.reporting.usage_samples import UsageLog
from runner.sandbox.executor import Executor
from runner.sandbox.outcome import Ending, Execution
from runner.sandbox.pool.worker import SandboxLostError
from tests.service.runner.fake_orchestrator import RIGHT, RUN_ID, FakeOrchestrator, chat_stream, problem
from tests.uids import own_uid_base

pytestmark = pytest.mark.anyio


async def work_on(fake: FakeOrchestrator, executor_type: type[Executor] = Executor) -> int:
    spec, log = RunSpec.model_validate(fake.full_spec()), Log()
    items = items_of(spec)
    usage = UsageLog(lambda: None)
    base = f"{fake.url}/runner/runs/{RUN_ID}"
    model = open_client(spec.model, spec.gateway_url, spec.run_token)
    calls = Calls(model, spec.concurrency, log, max_pause_s=0.05, patience_s=1.0)
    judge_clients = {
        part.name: open_client(part.judge_model, spec.gateway_url, spec.run_token)
        for part in spec.benchmarks
        if part.judge_model is not None
    }
    judges = {name: Calls(client, spec.concurrency, log) for name, client in judge_clients.items()}
    async with (
        asyncio.timeout(60),
        httpx.AsyncClient(trust_env=False) as client,
        Reporter(client, f"{base}/events", attempt=1, heartbeat_s=9, batch_s=0.01, log=log, usage=usage) as reporter,
        executor_type.open(slots=spec.sandbox_slots, uid_base=own_uid_base()) as executor,
    ):
        problems = Problems(client, f"{base}/problems", ((item.benchmark, item.problem_id) for item in items), log)
        fetching = asyncio.create_task(problems.fetch())
        work = Work(spec, items, reporter, problems, calls, executor, log, judges)
        try:
            return await work.run()
        finally:
            fetching.cancel()
            await reporter.flush()
            for client_of_model in (model, *judge_clients.values()):
                await client_of_model.close()
            assert problems.held_bytes == 0 or work.finished < len(items)


def refused(status: int, code: str) -> Response:
    return JSONResponse({"error": {"message": f"says {code}"}, "code": code}, status)


def outcomes(fake: FakeOrchestrator) -> dict[str, str]:
    return {key: item["outcome"] for key, item in fake.items.items()}


async def test_every_item_has_one_outcome(orchestrator: FakeOrchestrator) -> None:
    names = ("refused", "truncated", "whole", "failed", "broken", "missing", "flaky", "away")
    orchestrator.problems = [problem(name) for name in names if name != "missing"]
    orchestrator.problems[4]["record"]["public_test_cases"] = "what"
    benchmark = {"name": "sample", "adapter": "livecodebench", "pack_digest": "d", "problem_ids": list(names)}
    orchestrator.spec["benchmarks"] = [benchmark]
    asked: list[str] = []
    answers: dict[str, Callable[[], Response]] = {
        "refused": lambda: chat_stream("no", "content_filter"),
        "truncated": lambda: chat_stream(RIGHT + "Or better:\n```python\nprint(", "length"),
        "whole": lambda: chat_stream(RIGHT + "This is right bec", "length"),
        "failed": lambda: refused(400, "EXTERNAL_API_ERROR"),
        "flaky": lambda: refused(503, "UNAVAILABLE") if asked.count("flaky") < 3 else chat_stream(RIGHT),
        "away": lambda: refused(503, "UNAVAILABLE"),
    }

    def answer(key: str, body: dict[str, Any]) -> Response:
        asked.append(key.split("/")[1])
        return answers[asked[-1]]()

    orchestrator.answer = answer
    assert await work_on(orchestrator) == 8
    assert outcomes(orchestrator) == {
        "refused": "refused",
        "truncated": "truncated",
        "whole": "passed",
        "failed": "provider_error",
        "broken": "infra_error",
        "missing": "infra_error",
        "flaky": "passed",
        "away": "infra_error",
    }
    assert "says EXTERNAL_API_ERROR" in orchestrator.items["failed"]["detail"]
    assert "the gateway did not answer" in orchestrator.items["away"]["detail"]


async def test_a_result_carries_everything(orchestrator: FakeOrchestrator) -> None:
    await work_on(orchestrator)
    item = orchestrator.items["p1"]
    assert orchestrator.problems[0]["record"]["question_content"] in item["prompt"]
    assert (item["prompt_version"], item["extraction_rule"]) == ("livecodebench-1", "python_block")
    assert (item["answer"], item["code"]) == (RIGHT, "print(2 * int(input()))")
    assert (item["tests_total"], item["tests_passed"], item["exit"]) == (2, 2, "exit 0")
    assert item["usage"]["wall_s"] > 0
    call = item["calls"][0]
    assert (call["call_key"], call["finish_reason"]) == ("sample/p1/0/0", "stop")
    assert (call["input_tokens"], call["output_tokens"], call["cached_tokens"], call["reasoning_tokens"]) == (10, 7, 4, 3)


async def test_thinking_is_kept_apart_from_the_answer_and_bounded(orchestrator: FakeOrchestrator) -> None:
    orchestrator.answer = lambda key, body: chat_stream(RIGHT, thinking="I see. " * 60_000)
    await work_on(orchestrator)
    item = orchestrator.items["p1"]
    assert item["answer"] == RIGHT
    assert item["thinking"].startswith("I see. I see.")
    assert len(item["thinking"]) < THINKING_CHARS + 100


async def test_what_earlier_attempts_finished_is_left_out(orchestrator: FakeOrchestrator) -> None:
    orchestrator.problems = [problem("p1"), problem("p2")]
    done = [("p1", 0), ("p1", 1), ("p2", 1)]
    orchestrator.spec |= {
        "samples_per_problem": 2,
        "finished": [{"benchmark": "sample", "problem_id": key, "sample_index": index} for key, index in done],
    }
    assert await work_on(orchestrator) == 1
    assert [key for key, _, _ in orchestrator.calls] == ["sample/p2/0/0"]


class BrokenOnce(Executor):
    """A sandbox that fails on its first program."""

    programs: ClassVar[int] = 0

    async def run_stdin(self, program: str, *args: Any, **more: Any) -> Any:
        if "input()" in program:
            BrokenOnce.programs += 1
            if BrokenOnce.programs == 1:
                raise OSError("no more processes")
        return await super().run_stdin(program, *args, **more)


class Broken(Executor):
    """A sandbox that fails on every program."""

    async def run_stdin(self, program: str, *args: Any, **more: Any) -> Any:
        if "input()" in program:
            raise OSError("no more processes")
        return await super().run_stdin(program, *args, **more)


async def test_our_own_trouble_is_tried_again(orchestrator: FakeOrchestrator) -> None:
    BrokenOnce.programs = 0
    await work_on(orchestrator, BrokenOnce)
    assert outcomes(orchestrator) == {"p1": "passed"}


class Lost(Executor):
    """A sandbox that dies after its first program and cannot be replaced."""

    programs: ClassVar[int] = 0

    async def run_stdin(self, program: str, *args: Any, **more: Any) -> Any:
        if "input()" in program:
            Lost.programs += 1
            if Lost.programs > 1:
                raise SandboxLostError("the fork server has died")
        return await super().run_stdin(program, *args, **more)


async def test_without_a_sandbox_the_rest_is_left_to_the_next_attempt(orchestrator: FakeOrchestrator) -> None:
    Lost.programs = 0
    names = ["p1", "p2", "p3"]
    orchestrator.problems = [problem(name) for name in names]
    benchmark = {"name": "sample", "adapter": "livecodebench", "pack_digest": "d", "problem_ids": names}
    orchestrator.spec |= {"benchmarks": [benchmark], "concurrency": 1, "sandbox_slots": 1}
    with pytest.raises(RunFailed, match="sandbox is lost") as failed:
        await work_on(orchestrator, Lost)
    assert failed.value.reason == "runner_error"
    assert list(outcomes(orchestrator).values()) == ["passed"], "no item is given up for it"


class Unable(Executor):
    """A sandbox that says itself that it failed."""

    async def run_stdin(self, program: str, *args: Any, **more: Any) -> Any:
        if "input()" in program:
            BrokenOnce.programs += 1
            return [Execution(Ending.sandbox_failed, detail="it broke")]
        return await super().run_stdin(program, *args, **more)


async def test_a_sandbox_that_fails_is_tried_again_and_the_answer_kept(orchestrator: FakeOrchestrator) -> None:
    BrokenOnce.programs = 0
    await work_on(orchestrator, Unable)
    assert BrokenOnce.programs == 2
    assert outcomes(orchestrator) == {"p1": "infra_error"}
    assert orchestrator.items["p1"]["answer"] == RIGHT


async def test_our_own_trouble_is_never_a_wrong_answer(orchestrator: FakeOrchestrator) -> None:
    await work_on(orchestrator, Broken)
    assert outcomes(orchestrator) == {"p1": "infra_error"}
    assert "no more processes" in orchestrator.items["p1"]["detail"]


def benchmark(adapter: str, *problem_ids: str) -> dict[str, Any]:
    return {"benchmarks": [{"name": "x", "adapter": adapter, "pack_digest": "d", "problem_ids": problem_ids}]}


FAILURES: dict[str, tuple[dict[str, Any], Callable[[], Response], str, str]] = {
    "budget": ({}, lambda: refused(402, "BUDGET_EXHAUSTED"), "budget_exhausted", "says BUDGET"),
    "wrong key": ({}, lambda: refused(401, "PROVIDER_KEY_REFUSED"), "provider_error", "says PROVIDER_KEY"),
    "no such model": ({}, lambda: refused(404, "EXTERNAL_API_ERROR"), "provider_error", "refuses every call"),
    "unknown adapter": (benchmark("new", "p1"), Response, "dataset_error", "no adapter 'new'"),
    "no problems": (benchmark("livecodebench", "p9"), Response, "dataset_error", "not delivered"),
}


@pytest.mark.parametrize(("spec", "answer", "reason", "message"), FAILURES.values(), ids=FAILURES)
async def test_runs_that_end_early(
    orchestrator: FakeOrchestrator, spec: dict[str, Any], answer: Callable[[], Response], reason: str, message: str
) -> None:
    orchestrator.problems = [problem(f"p{index}") for index in range(8)]
    orchestrator.spec |= {"concurrency": 1, **spec}
    orchestrator.answer = lambda key, body: answer()
    with pytest.raises(RunFailed, match=message) as caught:
        await work_on(orchestrator)
    assert caught.value.reason == reason
    assert len(orchestrator.calls) <= 6


async def test_a_budget_that_ends_in_the_middle_keeps_what_there_is(orchestrator: FakeOrchestrator) -> None:
    orchestrator.problems = [problem(f"p{index}") for index in range(8)]
    orchestrator.spec["concurrency"] = 1
    orchestrator.answer = lambda key, body: RIGHT if len(orchestrator.calls) < 4 else refused(402, "BUDGET_EXHAUSTED")
    with pytest.raises(RunFailed):
        await work_on(orchestrator)
    assert list(outcomes(orchestrator).values()) == ["passed"] * 3


async def test_one_refused_call_among_good_ones_ends_nothing(orchestrator: FakeOrchestrator) -> None:
    orchestrator.problems = [problem(f"p{index}") for index in range(6)]
    orchestrator.spec["concurrency"] = 1
    orchestrator.answer = lambda key, body: RIGHT if key == "sample/p1/0/0" else refused(404, "EXTERNAL_API_ERROR")
    assert await work_on(orchestrator) == 6
    assert sorted(outcomes(orchestrator).values()) == ["passed", *["provider_error"] * 5]


def refused_for(scope: str, message: str) -> Response:
    details = {"error_code": "EXTERNAL_API_ERROR", "scope": scope}
    return JSONResponse({"error": {"message": message, "details": details}, "code": "EXTERNAL_API_ERROR"}, 400)


@pytest.mark.parametrize("scope", ["run", "unknown"])
async def test_a_provider_that_refuses_every_call_is_asked_a_few_times(orchestrator: FakeOrchestrator, scope: str) -> None:
    orchestrator.problems = [problem(f"p{index}") for index in range(40)]
    orchestrator.spec["concurrency"] = 4
    orchestrator.answer = lambda key, body: refused_for(scope, "Invalid model name")
    with pytest.raises(RunFailed, match="refuses every call: Invalid model name") as failed:
        await work_on(orchestrator)
    assert failed.value.reason == "provider_error"
    assert len(orchestrator.calls) <= 10
    assert len(orchestrator.items) == len(orchestrator.calls), "what was asked is reported"


async def test_what_is_refused_for_its_own_sake_ends_nothing(orchestrator: FakeOrchestrator) -> None:
    orchestrator.problems = [problem(f"p{index}") for index in range(20)]
    orchestrator.answer = lambda key, body: RIGHT if key == "sample/p19/0/0" else refused_for("item", "prompt is too long")
    assert await work_on(orchestrator) == 20
    assert sorted(outcomes(orchestrator).values()) == ["passed", *["provider_error"] * 19]


async def test_an_answer_that_takes_longer_than_refusals_is_waited_for(orchestrator: FakeOrchestrator) -> None:
    """Refusals come at once, answers take their time: whether all are refused is seen when those under way have ended."""
    orchestrator.problems = [problem(f"p{index}") for index in range(20)]
    orchestrator.spec["concurrency"] = 4
    begun, late = threading.Event(), threading.Event()

    def answer(key: str, body: dict[str, Any]) -> Response | str:
        if key == "sample/p0/0/0":
            begun.set()
            assert late.wait(60)
        assert begun.wait(60)
        return RIGHT if late.is_set() else refused_for("unknown", "odd")

    orchestrator.answer = answer
    working = asyncio.create_task(work_on(orchestrator))
    async with asyncio.timeout(60):
        while len(orchestrator.items) < ALIKE:
            await asyncio.sleep(0.01)
    late.set()
    assert await working == 20
    found = outcomes(orchestrator)
    assert found["p0"] == "passed"
    refusals = [key for key, outcome in found.items() if outcome == "provider_error"]
    assert ALIKE <= len(refusals) < 19, "no new call is made while those under way decide, then it goes on"
    assert [outcome for key, outcome in found.items() if key not in refusals] == ["passed"] * (20 - len(refusals))


async def test_judging_does_not_hold_up_the_calls(orchestrator: FakeOrchestrator) -> None:
    """Three slow programs in one slot, one call at a time: the calls are all made long before the last verdict."""
    orchestrator.problems = [problem(f"p{index}") for index in range(3)]
    orchestrator.spec["concurrency"] = 1
    times: list[float] = []

    def answer(key: str, body: dict[str, Any]) -> str:
        times.append(time.monotonic())
        return "```python\nimport time\ntime.sleep(0.3)\nprint(2 * int(input()))\n```"

    orchestrator.answer = answer
    began = time.monotonic()
    await work_on(orchestrator)
    assert times[-1] - times[0] < 0.6 * (time.monotonic() - began)
    assert set(outcomes(orchestrator).values()) == {"passed"}


@pytest.mark.parametrize(
    ("problem_id", "key"),
    [
        ("HumanEval/0", "b/HumanEval/0/1/0"),
        ("abc_1", "b/abc_1/1/0"),
        ("ä b\n", "b/%C3%A4%20b%0A/1/0"),
        ("50%", "b/50%25/1/0"),
    ],
)
def test_call_keys_fit_into_a_header(problem_id: str, key: str) -> None:
    assert Item("b", ADAPTERS["livecodebench"], problem_id, 1).call_key == key
