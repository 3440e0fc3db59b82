"""The boot line, the plain link, and that they agree with the contract."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from fastapi.responses import JSONResponse

from runner.contract import events, run_spec
from runner.errors import BootRefused
from runner.process.boot import CONTRACT_VERSION, Boot, Link, announce, boot_event, read_boot, seconds
from tests.service.runner.fake_orchestrator import RUN_ID, RUN_TOKEN, FakeOrchestrator

LINE = {"orchestrator_url": "http://o:1", "token": "t", "instance_type": "lite", "engine": "docker"}


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ours, theirs = os.pipe()
    yield ours, theirs
    os.close(ours)


def fed(pipe: tuple[int, int], text: str) -> int:
    os.write(pipe[1], text.encode())
    os.close(pipe[1])
    return pipe[0]


def test_it_agrees_with_the_contract() -> None:
    assert CONTRACT_VERSION == run_spec.CONTRACT_VERSION
    assert Boot._fields == tuple(run_spec.BootConfig.model_fields)
    assert events.StageEvent.model_validate(boot_event({})).stage is events.Stage.BOOT


@pytest.mark.parametrize("tail", ["\n", "", "\nmore"], ids=["line", "no newline", "something behind"])
def test_the_line_is_read_and_the_input_closed(pipe: tuple[int, int], tail: str) -> None:
    fd = fed(pipe, json.dumps({**LINE, "unknown": 1}) + tail)
    assert read_boot(fd) == Boot(**LINE)
    assert os.read(fd, 10) == b""


BAD = {
    "empty": "",
    "no JSON": "nonsense\n",
    "a list": "[]\n",
    "no fields": "{}\n",
    "empty token": json.dumps({**LINE, "token": ""}),
    "no scheme": json.dumps({**LINE, "orchestrator_url": "o:1"}),
    "long": "x" * 60_000,
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_bad_line_is_refused(pipe: tuple[int, int], text: str) -> None:
    with pytest.raises(BootRefused):
        read_boot(fed(pipe, text))


def test_the_first_event_goes_out_by_itself(orchestrator: FakeOrchestrator) -> None:
    link = Link(orchestrator.url)
    assert announce(link, RUN_ID, 1, RUN_TOKEN, {"python": "3"}) == 1
    assert orchestrator.events[1]["facts"] == {"python": "3"}
    orchestrator.before_event = lambda n: JSONResponse({}, 500)
    assert announce(link, RUN_ID, 1, RUN_TOKEN, {}) == 0
    link.close()
    assert announce(Link("http://127.0.0.1:9"), RUN_ID, 1, RUN_TOKEN, {}) == 0


@pytest.mark.parametrize(("header", "value"), [("3", 3.0), ("x", None), (None, None), ("-1", None), ("1e9", None)])
def test_retry_after(header: str | None, value: float | None) -> None:
    assert seconds(header) == value


def test_nothing_large_is_imported_before_the_first_event() -> None:
    large = ("asyncio", "pydantic", "httpx", "httpx2", "anthropic", "openai")
    look = f"import sys, runner.__main__; print([name for name in {large} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", look], text=True).strip() == "[]"


def test_memory_is_hidden() -> None:
    look = "import ctypes, runner.process.boot as boot; boot.hide_memory(); print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    assert subprocess.check_output([sys.executable, "-c", look], text=True).strip() == "0"
