"""A real runner with a real harness (a small program) against a server that plays orchestrator and gateway."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.responses import JSONResponse, Response

from runner.harness.model_endpoint import harness_key
from tests.service.runner.fake_orchestrator import RUN_TOKEN, FakeOrchestrator, StartRunner

ASKING = """
import json, os, socket, sys, time, urllib.error, urllib.request

def call(path, body=None, key=None, timeout=600, **headers):
    url = os.environ["ANTHROPIC_BASE_URL"] + path
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    headers |= {"Authorization": "Bearer " + (key or os.environ["OPENAI_API_KEY"]), "Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=timeout) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()

def ask(text, model=os.environ["BENCHYARD_MODEL"], **more):
    return call("/v1/chat/completions", {"model": model, "messages": [{"role": "user", "content": text}]}, **more)

def report(**item):
    with open("results.jsonl", "a") as file:
        file.write(json.dumps(item) + "\\n")
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(orchestrator: FakeOrchestrator, start_runner: StartRunner) -> Start:
    def begin(program: str, **changed: Any) -> subprocess.Popen[str]:
        file = {"name": "h.py", "content": base64.b64encode((ASKING + program).encode()).decode()}
        task = {
            "name": "mine",
            "image": "any:1",
            "argv": [sys.executable, "h.py"],
            "files": [file],
            "results": {"format": "jsonl", "paths": ["*.jsonl"]},
            **changed,
        }
        part = {"name": "mine", "adapter": "harness", "pack_digest": "d", "problem_ids": []}
        orchestrator.spec |= {"kind": "harness", "harness": task, "benchmarks": [part]}
        return start_runner(orchestrator.boot_line)

    return begin


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, err = process.communicate(timeout=600)
    return process.returncode, err


def chat(text: str) -> Response:
    message = {"role": "assistant", "content": text}
    return JSONResponse({"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


def test_items_appear_and_the_key_is_good_for_nothing_else(orchestrator: FakeOrchestrator, start: Start) -> None:
    reported = threading.Event()
    orchestrator.after_event = lambda n: reported.set() if orchestrator.of("progress") else None  # type: ignore[func-returns-value]

    def answer(key: str, body: dict[str, Any]) -> Response:
        if body["messages"][0]["content"] == "second":
            assert reported.wait(300), "the first item is reported while the harness still runs"
        return chat("42")

    orchestrator.answer = answer
    program = f"""
status, text = ask("first")
report(id="a", passed=True, input="first", output=json.loads(text)["choices"][0]["message"]["content"])
ask("second", model="benchyard")
tries = {{
    "another model": ask("x", model="gpt-9"),
    "another key": ask("x", key="guessed"),
    "another protocol": call("/v1/messages", {{"model": "benchyard"}}),
    "claim": call("/runner/claim", {{}}),
    "events": call("/runner/runs/run-1/events", {{}}),
    "page": call("/runs"),
    "no JSON": call("/v1/chat/completions", b"nonsense"),
    "models": call("/v1/models"),
}}
def reach(address):
    try:
        socket.create_connection(address, 2).close()
        return "reached"
    except OSError:
        return "not reached"
orchestrator = ("127.0.0.1", {orchestrator.url.rsplit(":", 1)[1]})
statuses = {{name: status for name, (status, _) in tries.items()}}
report(id="b", score=0.5, output=json.dumps(statuses), reason=reach(orchestrator))
report(id="c", passed=True, output=tries["another model"][1])
"""
    code, err = finish(start(program))
    assert code == 0, err
    assert {key: item["outcome"] for key, item in orchestrator.items.items()} == {
        "a": "passed",
        "b": "wrong_answer",
        "c": "passed",
    }
    assert orchestrator.items["a"]["answer"] == "42"
    assert [orchestrator.items[key].get("score") for key in "abc"] == [None, 0.5, None]
    assert json.loads(orchestrator.items["b"]["answer"]) == {
        "another model": 404,
        "another key": 401,
        "another protocol": 400,
        "claim": 404,
        "events": 404,
        "page": 404,
        "no JSON": 400,
        "models": 200,
    }
    assert "this run measures demo-1" in orchestrator.items["c"]["answer"]
    (running,) = [event for event in orchestrator.of("stage") if event["stage"] == "running"]
    restricted = running["facts"]["network"] == "loopback only"
    assert orchestrator.items["b"]["detail"] == ("not reached" if restricted else "reached")
    assert len(orchestrator.calls) == 2
    assert all(call[2]["authorization"] == f"Bearer {RUN_TOKEN}" for call in orchestrator.calls)
    assert orchestrator.calls[0][1]["max_completion_tokens"] == 8192, "the model's own limit, where the harness gives none"
    assert {call[1]["model"] for call in orchestrator.calls} == {"demo-1"}
    assert RUN_TOKEN not in harness_key(RUN_TOKEN)


def test_a_gateway_that_is_away_and_a_client_that_gives_up_cost_no_second_call(
    orchestrator: FakeOrchestrator, start: Start
) -> None:
    slow = threading.Event()

    def answer(key: str, body: dict[str, Any]) -> Response:
        text, number = body["messages"][0]["content"], len(orchestrator.calls)
        if text == "away" and number == 1:
            return JSONResponse({"code": "UNAVAILABLE"}, 503, headers={"x-benchyard-code": "UNAVAILABLE"})
        if text == "slow" and not slow.is_set():
            slow.set()
            threading.Event().wait(3)
        return chat("yes")

    orchestrator.answer = answer
    program = """
ask("away")
try:
    ask("slow", timeout=1)
except TimeoutError:
    ask("slow")
ask("slow")
report(id="a", passed=True)
"""
    code, err = finish(start(program))
    assert code == 0, err
    keys = [key for key, _, _ in orchestrator.calls]
    assert keys[0] == keys[1]
    assert keys[2] == keys[3], "the client left, so its repeated request joins the same call"
    assert keys[4] == keys[3].replace("/0/0", "/1/0"), "asked once more, it is a new call"


def test_killed_and_started_again_it_asks_for_the_same_calls(
    orchestrator: FakeOrchestrator, start: Start, tmp_path: Path
) -> None:
    orchestrator.answer = lambda key, body: chat("yes")
    program = """
import random
questions = ["a", "b", "a", "c"]
random.shuffle(questions)
for text in questions:
    ask(text)
report(id="all", passed=True)
if not os.path.exists(os.environ["MARK"]):
    open(os.environ["MARK"], "w").close()
    os.kill(os.getppid(), 9)  # the process that started it; everything else ends with that one
    time.sleep(60)
"""
    mark = str(tmp_path / "killed")
    code, err = finish(start(program, env={"MARK": mark}))
    assert code == 4, err
    first = sorted(key for key, _, _ in orchestrator.calls)
    orchestrator.calls.clear()
    orchestrator.events.clear()
    code, err = finish(start(program, env={"MARK": mark}))
    assert code == 0, err
    assert sorted(key for key, _, _ in orchestrator.calls) == first


@pytest.mark.parametrize(
    ("program", "changed", "words"),
    [
        ("print('about to fail')\nsys.exit(3)", {}, ("exit code 3", "about to fail")),
        ("os.kill(os.getpid(), 9)", {}, ("signal 9", "without output")),
        ("pass", {}, ("ended without results", "*.jsonl")),
        ("report(id='a')", {}, ("ended without results", "neither passed")),
        ("report(id='a', passed=True)\nreport(id='b')", {}, ("results cannot be read", "neither passed")),
        ("pass", {"argv": ["no-such-program"]}, ("no program 'no-such-program'",)),
        ("report(id='a', passed=True)\nsys.exit(1)", {"exit_codes": [0, 2]}, ("exit code 1",)),
    ],
)
def test_how_a_harness_can_fail(
    orchestrator: FakeOrchestrator, start: Start, program: str, changed: dict[str, Any], words: tuple[str, ...]
) -> None:
    code, err = finish(start(program, **changed))
    assert code == 4, err
    (failed,) = orchestrator.of("failed")
    assert failed["reason"] == "harness_failed"
    for word in words:
        assert word in failed["message"]


def test_an_exhausted_budget_ends_the_harness_and_keeps_its_items(orchestrator: FakeOrchestrator, start: Start) -> None:
    orchestrator.answer = lambda key, body: JSONResponse(
        {"error": {"message": "the budget is used up"}, "code": "BUDGET_EXHAUSTED"}, 402
    )
    code, err = finish(start("report(id='a', passed=True)\nask('x')\ntime.sleep(600)"))
    assert code == 4, err
    (failed,) = orchestrator.of("failed")
    assert failed["reason"] == "budget_exhausted"
    assert "a" in orchestrator.items


def test_a_test_suite_of_another_package_scores_as_when_it_is_run_plainly(
    orchestrator: FakeOrchestrator, start: Start, tmp_path: Path
) -> None:
    """The tests that come with sniffio, and one of ours that fails, since a score of 1 would prove little."""
    failing = {"name": "test_wrong.py", "content": base64.b64encode(b"def test_wrong():\n    assert 1 == 2\n").decode()}
    (tmp_path / "test_wrong.py").write_bytes(base64.b64decode(failing["content"]))
    options = ["-q", "-p", "no:cacheprovider", "--pyargs", "sniffio", "test_wrong.py"]
    argv = [sys.executable, "-m", "pytest", *options, "--junitxml=report.xml"]
    plain = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    passed, failed = (int(re.search(rf"(\d+) {word}", plain.stdout)[1]) for word in ("passed", "failed"))  # type: ignore[index]
    rule = {"format": "junit", "paths": ["report.xml"]}
    code, err = finish(start("", argv=argv, files=[failing], results=rule, exit_codes=[0, 1]))
    assert code == 0, err
    outcomes = [item["outcome"] for item in orchestrator.items.values()]
    assert (outcomes.count("passed"), outcomes.count("wrong_answer")) == (passed, failed)
    assert passed > 1
    assert failed >= 1
    assert "assert 1 == 2" in orchestrator.items["test_wrong::test_wrong"]["detail"]
