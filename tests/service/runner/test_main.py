"""The whole program, as a real process against a real server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fastapi.responses import JSONResponse, Response

from tests.service.runner.fake_orchestrator import RIGHT, RUN_TOKEN, TOKEN, FakeOrchestrator, StartRunner, problem, serving
from tests.uids import own_uid_base


def finish(process: subprocess.Popen[str], timeout: float = 600) -> tuple[int, str]:
    _, err = process.communicate(timeout=timeout)
    return process.returncode, err


def test_a_run_goes_through(orchestrator: FakeOrchestrator, start_runner: StartRunner) -> None:
    orchestrator.problems = [problem("p1"), problem("p2"), problem("p3")]
    wrong = "```python\nprint(input())\n```"
    orchestrator.answer = lambda key, body: {"sample/p2/0/0": wrong, "sample/p3/0/0": "I do not know."}.get(key, RIGHT)

    code, err = finish(start_runner(orchestrator.boot_line))

    assert code == 0, err
    assert {key: item["outcome"] for key, item in orchestrator.items.items()} == {
        "p1": "passed",
        "p2": "wrong_answer",
        "p3": "no_answer",
    }
    stages = [event["stage"] for event in orchestrator.of("stage")]
    assert stages == ["boot", "provision", "running", "uploading", "finished"]
    assert list(orchestrator.events) == list(range(1, len(orchestrator.events) + 1))
    assert max(orchestrator.events.items())[1] == {"type": "complete", "seq": len(orchestrator.events)}
    assert orchestrator.items["p1"]["tests_passed"] == 2
    assert orchestrator.calls[0][2]["authorization"] == f"Bearer {RUN_TOKEN}"
    assert RUN_TOKEN not in err


def refused(status: int, code: str) -> Response:
    return JSONResponse({"error": {"message": f"says {code}"}, "code": code}, status)


@pytest.mark.parametrize(
    ("line", "why"),
    [("nonsense", "boot configuration"), (None, "refused the claim with status 426: too old")],
    ids=["boot line", "claim"],
)
def test_a_runner_that_is_not_wanted(
    orchestrator: FakeOrchestrator, start_runner: StartRunner, line: str | None, why: str
) -> None:
    orchestrator.claim_answers = [JSONResponse({"detail": "too old"}, 426)]
    code, err = finish(start_runner(line or orchestrator.boot_line))
    assert code == 2
    assert why in err


def test_nothing_left_to_do_is_complete(orchestrator: FakeOrchestrator, start_runner: StartRunner) -> None:
    orchestrator.spec["finished"] = [{"benchmark": "sample", "problem_id": "p1"}]
    code, _ = finish(start_runner(orchestrator.boot_line))
    assert code == 0
    assert orchestrator.items == {}
    assert len(orchestrator.of("complete")) == 1


def test_a_run_that_fails_says_so(orchestrator: FakeOrchestrator, start_runner: StartRunner) -> None:
    orchestrator.answer = lambda key, body: refused(401, "PROVIDER_KEY_REFUSED")
    code, err = finish(start_runner(orchestrator.boot_line))
    assert code == 4, err
    last = orchestrator.events[max(orchestrator.events)]
    assert (last["type"], last["reason"]) == ("failed", "provider_error")
    assert "says PROVIDER_KEY_REFUSED" in last["message"]
    assert orchestrator.items["p1"]["outcome"] == "provider_error"


@pytest.fixture
def held(orchestrator: FakeOrchestrator) -> Iterator[None]:
    """No model call is answered while the test lasts."""
    over = threading.Event()

    def answer(key: str, body: dict[str, Any]) -> str:
        over.wait(300)
        return RIGHT

    orchestrator.answer = answer
    yield
    over.set()


@pytest.mark.parametrize("how", ["superseded", "cancelled", "abandoned", "terminated"])
@pytest.mark.usefixtures("held")
def test_runs_that_are_stopped(orchestrator: FakeOrchestrator, start_runner: StartRunner, how: str) -> None:
    orchestrator.spec |= {"heartbeat_s": 0.1, "patience_s": 0.5}
    process = start_runner(orchestrator.boot_line)
    wait_for(lambda: bool(orchestrator.calls))
    if how == "superseded":
        orchestrator.before_event = lambda n: JSONResponse({}, 409)
    elif how == "cancelled":
        orchestrator.desired = "cancel"
    elif how == "abandoned":
        orchestrator.before_event = lambda n: JSONResponse({}, 500)
    else:
        assert TOKEN not in Path(f"/proc/{process.pid}/cmdline").read_text()
        assert os.readlink(f"/proc/{process.pid}/fd/0") == "/dev/null"
        process.send_signal(signal.SIGTERM)
    code, err = finish(process)
    assert code == {"superseded": 3, "cancelled": 0, "abandoned": 6, "terminated": 143}[how], err
    assert not orchestrator.of("complete")


@pytest.mark.usefixtures("held")
def test_terminated_while_nobody_listens(orchestrator: FakeOrchestrator, start_runner: StartRunner) -> None:
    process = start_runner(orchestrator.boot_line)
    wait_for(lambda: bool(orchestrator.calls))
    orchestrator.before_event = lambda n: JSONResponse({}, 500)
    process.send_signal(signal.SIGTERM)
    code, _ = finish(process)
    assert code == 143


def test_terminated_during_the_claim(orchestrator: FakeOrchestrator, start_runner: StartRunner) -> None:
    orchestrator.claim_answers = [JSONResponse({"action": "wait", "retry_after_s": 50})]
    process = start_runner(orchestrator.boot_line)
    wait_for(lambda: bool(orchestrator.claims))
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 143


def test_the_orchestrator_restarts_in_the_middle(start_runner: StartRunner) -> None:
    fake = FakeOrchestrator()
    fake.problems = [problem(f"p{index}") for index in range(6)]
    fake.spec["concurrency"] = 2

    def answer(key: str, body: dict[str, Any]) -> str:
        time.sleep(0.2)
        return RIGHT

    fake.answer = answer
    with serving(fake.app()) as fake.url:
        process = start_runner(fake.boot_line)
        wait_for(lambda: len(fake.items) >= 2)
    time.sleep(0.5)
    with serving(fake.app(), int(fake.url.rsplit(":", 1)[1])):
        code, err = finish(process)
    assert code == 0, err
    assert [item["outcome"] for item in fake.items.values()] == ["passed"] * 6
    assert list(fake.events) == list(range(1, len(fake.events) + 1))


def wait_for(condition: Callable[[], bool], timeout_s: float = 300) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def descendants(pid: int) -> list[int]:
    try:
        own = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:  # it is gone
        return []
    return [*own, *(below for each in own for below in descendants(each))]


def test_one_that_stands_ready_and_whose_sandbox_broke_takes_no_run(
    orchestrator: FakeOrchestrator, start_runner: StartRunner
) -> None:
    boot = {**json.loads(orchestrator.boot_line), "stand_ready": {"sandbox_slots": 1, "sandbox_uid_base": own_uid_base()}}
    orchestrator.claim_answers = [JSONResponse({"action": "wait", "retry_after_s": 0.5}) for _ in range(100)]
    process = start_runner(json.dumps(boot))
    wait_for(lambda: len(orchestrator.claims) > 1)
    first, second = (claim["idle"] for claim in orchestrator.claims[:2])
    assert 0 < first["cpu_s"] <= second["cpu_s"]
    assert first["memory_bytes"] > 0
    asked = len(orchestrator.claims)
    while process.poll() is None and len(orchestrator.claims) < asked + 50:
        for pid in descendants(process.pid):  # again and again: one that died once is started anew
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    code, err = finish(process)
    assert code == 5, err
    assert not orchestrator.events
