"""Claiming: who is tried again, who waits, who is turned away."""

from __future__ import annotations

import socket

import pytest
from fastapi.responses import JSONResponse, PlainTextResponse

from runner.errors import ClaimRefused
from runner.log import Log
from runner.process.boot import Boot, Link
from runner.process.claim import claim
from tests.service.runner.fake_orchestrator import RUN_ID, TOKEN, FakeOrchestrator


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.time = 0.0
        self.pauses: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, pause_s: float) -> None:
        self.time += pause_s
        self.pauses.append(pause_s)


def ask(url: str, clock: Clock) -> dict[str, object]:
    link = Link(url)
    try:
        return claim(link, Boot(url, TOKEN, "lite", "docker"), "r-1", Log(), sleep=clock.sleep, now=clock.now)
    finally:
        link.close()


def test_a_run_is_given(orchestrator: FakeOrchestrator) -> None:
    spec = ask(orchestrator.url, Clock())
    assert spec is not None
    assert spec["run_id"] == RUN_ID
    assert orchestrator.claims == [{"runner_id": "r-1", "contract_version": 1, "instance_type": "lite", "engine": "docker"}]


def test_trouble_and_waiting_are_sat_out_under_the_same_id(orchestrator: FakeOrchestrator) -> None:
    orchestrator.claim_answers = [
        JSONResponse({}, 500),
        JSONResponse({}, 503, headers={"Retry-After": "7"}),
        JSONResponse({"action": "wait", "retry_after_s": 40}),
    ]
    clock = Clock()
    assert ask(orchestrator.url, clock)["run_id"]
    assert {claim["runner_id"] for claim in orchestrator.claims} == {"r-1"}
    assert clock.pauses[1] > 5
    assert clock.pauses[2] == 40


@pytest.mark.parametrize("status", [401, 403, 404, 409, 422, 426])
def test_a_refusal_is_final_and_says_why(orchestrator: FakeOrchestrator, status: int) -> None:
    orchestrator.claim_answers = [JSONResponse({"detail": "versions differ"}, status)]
    with pytest.raises(ClaimRefused, match=f"{status}: versions differ"):
        ask(orchestrator.url, Clock())


@pytest.mark.parametrize("body", ["<html>", "[]", '{"action": "run"}', '{"action": "run", "spec": {}}', "null"])
def test_an_answer_that_makes_no_sense_is_refused(orchestrator: FakeOrchestrator, body: str) -> None:
    orchestrator.claim_answers = [PlainTextResponse(body)]
    with pytest.raises(ClaimRefused, match="cannot be understood"):
        ask(orchestrator.url, Clock())


def test_patience_ends() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        clock = Clock()
        with pytest.raises(ClaimRefused, match="did not answer"):
            ask(f"http://127.0.0.1:{closed.getsockname()[1]}", clock)
    assert 80 < clock.time <= 100
