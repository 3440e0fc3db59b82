"""What a runner may send: nothing before its token is checked, and nothing that breaks the pages of its run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlmodel import Session, select

from orchestrator.runs.tables import ItemRow
from orchestrator.settings import Settings
from runner.contract.run_spec import CALL_KEY_HEADER, call_key
from tests.contract.test_runner_api import started
from tests.served import RunnerClient, Service, served

pytestmark = pytest.mark.anyio

LARGE = 24 << 20
PAGES = ("/runs/{}", "/runs/{}/items/0", "/runs", "/")
ANSWERS = ("", "/items", "/items/0", "/scores", "/logs", "/calls", "/export?format=csv", "/export?format=jsonl")


@pytest.fixture
def service(shared_service: Service) -> Service:
    return shared_service


@pytest.fixture
async def runner(service: Service):  # type: ignore[no-untyped-def]
    it = await started(service)
    await it.claim()
    yield it
    await it.close()


@pytest.mark.parametrize("path", ["/runner/claim", "/runner/runs/some-run/events", "/runner/runs/some-run/artefacts/log"])
@pytest.mark.parametrize("token", ["", "authorization: Bearer wrong\r\n"], ids=["none", "wrong"])
async def test_a_stranger_is_refused_before_the_body_is_read(service: Service, path: str, token: str) -> None:
    """Only the head is sent: an answer shows that nobody waited for the body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    method = "PUT" if "artefacts" in path else "POST"
    length = 1000 if path == "/runner/claim" else LARGE
    writer.write(f"{method} {path} HTTP/1.1\r\nhost: x\r\n{token}content-length: {length}\r\n\r\n".encode())
    async with asyncio.timeout(60):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    writer.close()
    assert " 401 " in head.splitlines()[0]
    assert "connection: close" in head


async def test_a_claim_is_small(runner: RunnerClient) -> None:
    answer = await runner.http.post("/runner/claim", json={"runner_id": "x" * (70 << 10)})
    assert answer.status_code == 413


async def test_one_attempt_holds_one_body_at_a_time(service: Service, runner: RunnerClient) -> None:
    """While one body is on its way, the next one of the same run is not read."""
    run_id = runner.spec["run_id"]
    head = (
        f"POST /runner/runs/{run_id}/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {runner.token}\r\n"
        f"content-type: application/json\r\ncontent-length: {LARGE}\r\n\r\n"
    ).encode()
    slow, hasty = [await asyncio.open_connection("127.0.0.1", service.port) for _ in range(2)]
    slow[1].write(head)
    await slow[1].drain()
    await asyncio.sleep(0.3)  # its turn has begun; nothing is asserted about how long that takes
    hasty[1].write(head + b" " * LARGE)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await hasty[1].drain()
    for _, writer in (slow, hasty):
        writer.transport.abort()


def nested(depth: int) -> Any:
    value: Any = "end"
    for _ in range(depth):
        value = {"more": value}
    return value


FACTS: dict[str, dict[str, Any]] = {
    "deep": {"deep": nested(100)},
    "huge": {"huge": "x" * 5_000_000},
    "many": {f"fact {number}": number for number in range(5000)},
    "long name": {"n" * 100_000: 1},
    "NUL": {"nul": "a\x00b", "nested": ["\x00"]},
    "not what pages expect": {"stages": "none", "cpu_limit": 10**400, "memory_limit_bytes": -1, "started_at": 7},
}


@pytest.mark.parametrize("facts", FACTS.values(), ids=FACTS.keys())
async def test_facts_are_bounded_and_pages_show_them(service: Service, runner: RunnerClient, facts: dict[str, Any]) -> None:
    answer = await runner.send(runner.next("stage", stage="provision", facts=facts))
    assert answer.status_code == 200, answer.text
    await pages_work(service, runner.spec["run_id"], items=False)
    attempt = (await service.client.get(f"/api/container-runs/{runner.spec['run_id']}")).json()
    assert len(json.dumps(attempt)) < 500_000


async def test_a_runner_cannot_state_the_orchestrators_facts(service: Service, runner: RunnerClient) -> None:
    run_id = runner.spec["run_id"]
    facts = {"door": "http://elsewhere", "stood_ready": True, "remote": {"ended": True}, "stages": {"boot": "x"}, "own": 1}
    assert (await runner.send(runner.next("stage", stage="provision", facts=facts))).status_code == 200
    body = (await service.client.get(f"/api/container-runs/{run_id}")).text
    assert "elsewhere" not in body
    assert '"own":1' in body


ITEMS: dict[str, dict[str, Any]] = {
    "long texts": {"answer": "a" * 5_000_000, "prompt": "p" * 5_000_000, "code": "c" * 5_000_000, "detail": "d" * 5_000_000},
    "long names": {"exit": "e" * 1_000_000, "prompt_version": "v" * 1_000_000, "extraction_rule": "r" * 1_000_000},
    "NUL": {"answer": "a\x00b", "detail": "\x00", "code": "\x00", "exit": "\x00"},
    "many tests": {"tests": [{"index": n, "outcome": "passed"} for n in range(20_000)]},
    "long tests": {"tests": [{"index": 0, "outcome": "wrong_answer", "got": "g" * 3_000_000, "expected": "e" * 3_000_000}]},
    "many calls": {"calls": [{"call_key": "k" * 1000, "finish_reason": "f" * 1000}] * 1000},
}


@pytest.mark.parametrize("fields", ITEMS.values(), ids=ITEMS.keys())
async def test_items_are_bounded_and_pages_show_them(service: Service, runner: RunnerClient, fields: dict[str, Any]) -> None:
    item = {**runner.open_items()[0], "outcome": "wrong_answer", **fields}
    answer = await runner.send(runner.next("progress", item=item))
    assert answer.status_code == 200, answer.text
    await pages_work(service, runner.spec["run_id"])


BROKEN = {
    "NaN": '"usage": {"cpu_s": NaN}',
    "infinity": '"usage": {"wall_s": 1e999}',
    "negative": '"usage": {"peak_bytes": -1}',
    "larger than a column": '"usage": {"peak_bytes": 99999999999999999999999}',
    "half a character": '"detail": "\\ud800"',
    "not a number": '"calls": [{"call_key": "k", "latency_s": -Infinity}]',
}


@pytest.mark.parametrize("field", BROKEN.values(), ids=BROKEN.keys())
async def test_what_is_not_valid_is_refused_and_the_attempt_says_why(
    service: Service, runner: RunnerClient, field: str
) -> None:
    run_id = runner.spec["run_id"]
    item = json.dumps({**runner.open_items()[0], "outcome": "passed"})
    event = f'{{"type": "progress", "seq": {runner.next("stage")["seq"]}, "item": {item[:-1]}, {field}}}}}'
    answer = await runner.http.post(f"/runner/runs/{run_id}/events", content=f'{{"attempt": 1, "events": [{event}]}}')
    assert answer.status_code == 422, answer.text
    attempts = (await service.client.get(f"/api/container-runs/{run_id}")).json()
    assert "not valid" in json.dumps(attempts)
    await pages_work(service, run_id, items=False)


async def pages_work(service: Service, run_id: str, *, items: bool = True) -> None:
    for path in PAGES:
        if items or "items" not in path:
            answer = await service.client.get(path.format(run_id))
            assert answer.status_code == 200, (path, answer.status_code)
            assert len(answer.content) < 2_000_000, path
    for tail in ANSWERS:
        if items or tail != "/items/0":
            answer = await service.client.get(f"/api/container-runs/{run_id}{tail}")
            assert answer.status_code in (200, 404), (tail, answer.status_code, answer.text[:300])


async def test_pages_survive_what_is_stored_already(service: Service, runner: RunnerClient) -> None:
    """Rows of an earlier version, written past the checks of this one."""
    run_id = runner.spec["run_id"]
    await runner.send(runner.next("progress", item={**runner.open_items()[0], "outcome": "passed"}))
    damaged = {"usage": {"cpu_s": -1}, "tests": [{"index": "x"}], "calls": "none", "answer": 7, "benchmark": "sample"}

    def damage(session: Session) -> None:
        row = session.exec(select(ItemRow).where(ItemRow.run_id == run_id)).one()
        row.data = {"problem_id": row.problem_id, **damaged}
        session.add(row)
        facts = '{"deep": ' + "[" * 3000 + "]" * 3000 + "}"
        session.connection().exec_driver_sql("UPDATE attempts SET facts = ? WHERE run_id = ?", (facts, run_id))

    await service.services.db.write(damage)
    await pages_work(service, run_id)
    for facts in ('{"n": NaN, "i": [Infinity], "s": "\\ud800"}', '{"stages": 7, "cpu_limit": "x"}'):
        await service.services.db.write(
            lambda session, text=facts: session.connection().exec_driver_sql(  # type: ignore[misc]
                "UPDATE attempts SET facts = ? WHERE run_id = ?", (text, run_id)
            )
        )
        await pages_work(service, run_id)


async def test_only_calls_of_the_plan_are_answered(runner: RunnerClient) -> None:
    """A runner that was taken over cannot use the gateway for questions of its own."""
    item = runner.open_items()[0]
    planned = call_key(item["benchmark"], item["problem_id"], item["sample_index"])
    invented = (
        "anything",
        "a/b/0/0",
        planned.removesuffix("/0") + "/1",
        call_key(item["benchmark"], item["problem_id"], 99),
        call_key("humaneval", item["problem_id"], 0),
        "eval/generate/0/0",
        planned.replace("/0/0", "/00/0"),
        "%" + f"{ord(planned[0]):02X}" + planned[1:],
    )
    model = runner.spec["model"]
    body = {"model": model["name"], "messages": [{"role": "user", "content": "hello"}], "max_tokens": 16}

    async def ask(key: str) -> int:
        url = f"/gateway/{model['provider']}/v1/messages"
        return (await runner.http.post(url, json=body, headers={CALL_KEY_HEADER: key})).status_code

    assert {key: await ask(key) for key in invented} == dict.fromkeys(invented, 403)
    assert await ask(planned) == 200


async def test_an_item_passes_only_with_a_call_of_its_own(runner: RunnerClient) -> None:
    run_id, (first, second, *_) = runner.spec["run_id"], runner.open_items()
    await runner.ask(second)

    async def report(item: dict[str, Any], outcome: str) -> int:
        event = {"type": "progress", "seq": runner.seq + 1, "item": {**item, "outcome": outcome}}
        answer = await runner.http.post(f"/runner/runs/{run_id}/events", json={"attempt": 1, "events": [event]})
        runner.seq += answer.status_code == 200
        return answer.status_code

    assert await report(first, "passed") == 422
    assert await report(second, "passed") == 200
    assert await report(first, "provider_error") == 200, "a call that failed is no pass"


async def test_artefacts_of_a_run_have_a_quota(new_settings: Callable[..., Settings], anyio_backend: str) -> None:
    async with served(new_settings(max_run_artefact_bytes=1000)) as service:
        runner = await started(service)
        await runner.claim()

        async def put(name: str, size: int) -> int:
            path = f"/runner/runs/{runner.spec['run_id']}/artefacts/{name}"
            return (await runner.http.put(path, content=b"x" * size)).status_code

        assert await put("one", 600) == 204
        assert await put("two", 600) == 413
        assert await put("one", 900) == 204, "it takes the place of the first"
        assert await put("two", 40) == 204
        assert sorted(await asyncio.gather(put("three", 60), put("four", 60))) == [204, 413], "both at once do not fit"
        files = (await service.client.get(f"/api/container-runs/{runner.spec['run_id']}")).json()["artefacts"]
        assert sum(file["size_bytes"] for file in files) == 1000
        await runner.close()
        await service.engine.end_all()
