"""Every bad input of the API: a problem+json with a sentence that helps, and never a 5xx (F23)."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from orchestrator.http.access.identity import OWNER
from orchestrator.settings import Settings
from tests.served import TOKEN, Service, served

pytestmark = pytest.mark.anyio

RUNS = "/api/container-runs"
GOOD = {"model_id": "demo-strong", "sample_size": 3}


def check_problem(answer: httpx.Response, status: int, code: str, *words: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert (body["status"], body["code"]) == (status, code)
    assert body["request_id"] == answer.headers["x-request-id"]
    for word in words:
        assert word in body["detail"], body["detail"]
    return body


@pytest.mark.parametrize(
    ("changed", "status", "code", "words"),
    [
        pytest.param({"model_id": 999}, 404, "NOT_FOUND", ["no model 999", "GET /api/models"], id="unknown model id"),
        pytest.param({"model_id": "gone"}, 404, "NOT_FOUND", ["'gone'"], id="unknown model slug"),
        pytest.param({"model_id": 2**70}, 404, "NOT_FOUND", [], id="model id beyond any integer"),
        pytest.param({"model_id": None}, 422, "VALIDATION_ERROR", ["model_id"], id="model null"),
        pytest.param({"model_id": True}, 422, "VALIDATION_ERROR", ["model_id"], id="model boolean"),
        pytest.param({"model_id": "a\x00b"}, 422, "VALIDATION_ERROR", ["cannot be stored"], id="NUL"),
        pytest.param({"sample_size": 0}, 422, "VALIDATION_ERROR", ["sample_size", "greater than or equal to 1"], id="zero"),
        pytest.param({"sample_size": -5}, 422, "VALIDATION_ERROR", ["sample_size"], id="negative"),
        pytest.param(
            {"sample_size": 999}, 422, "VALIDATION_ERROR", ["only 36 match", "36 or fewer"], id="more than there are"
        ),
        pytest.param({"sample_size": "3"}, 422, "VALIDATION_ERROR", ["sample_size", "integer"], id="text for a number"),
        pytest.param({"sample_size": 3.0}, 422, "VALIDATION_ERROR", ["sample_size"], id="float for an integer"),
        pytest.param({"sample_size": None}, 422, "VALIDATION_ERROR", ["either sample_size"], id="neither size nor share"),
        pytest.param({"subset_pct": 10}, 422, "VALIDATION_ERROR", ["either sample_size"], id="both size and share"),
        pytest.param({"benchmarks": ["nope"]}, 404, "NOT_FOUND", ["no benchmark 'nope'", "sample"], id="unknown benchmark"),
        pytest.param({"benchmarks": ["../x"]}, 404, "NOT_FOUND", [], id="benchmark that is a path"),
        pytest.param({"benchmarks": ["sample"] * 2}, 422, "VALIDATION_ERROR", ["named once"], id="benchmark twice"),
        pytest.param({"benchmarks": "sample"}, 422, "VALIDATION_ERROR", ["benchmarks"], id="benchmarks not a list"),
        pytest.param({"instance_type": "xxl"}, 422, "VALIDATION_ERROR", ["'xxl'", "standard-1"], id="unknown instance type"),
        pytest.param({"colour": "red"}, 422, "VALIDATION_ERROR", ["colour: unknown field", "/docs"], id="unknown field"),
        pytest.param({"budget_usd": 0}, 422, "VALIDATION_ERROR", ["budget_usd"], id="budget zero"),
        pytest.param({"deadline_s": 10**9}, 422, "VALIDATION_ERROR", ["deadline_s"], id="deadline of decades"),
        pytest.param({"samples_per_problem": 201}, 422, "VALIDATION_ERROR", ["samples_per_problem"], id="too many samples"),
    ],
)
async def test_a_run_that_cannot_be(
    shared_service: Service, changed: dict[str, Any], status: int, code: str, words: list[str]
) -> None:
    answer = await shared_service.client.post(RUNS, json={**GOOD, **changed})
    check_problem(answer, status, code, *words)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        pytest.param(b"{", 422, ["not valid JSON"], id="cut off"),
        pytest.param(b"", 422, ["a JSON body is required"], id="empty"),
        pytest.param(b"[]", 422, [], id="a list"),
        pytest.param(b"null", 422, [], id="null"),
        pytest.param(b'{"model_id": 1, "sample_size": 3, "budget_usd": NaN}', 422, ["budget_usd"], id="NaN"),
        pytest.param(b'{"model_id": 1, "sample_size": 3, "budget_usd": 1e999}', 422, ["budget_usd"], id="infinity"),
        pytest.param(b'{"model_id": 1, "sample_size": ' + b"9" * 5000 + b"}", None, [], id="number of 5000 digits"),
        pytest.param(b"[" * 100_000, None, [], id="deep lists"),
        pytest.param(b'{"a":' * 100_000, None, [], id="deep objects"),
        pytest.param(b'{"model_id": "\xff\xfe"}', None, [], id="not UTF-8"),
        pytest.param(b'{"\\ud800": 1}', 422, [], id="half a character as a field name"),
        pytest.param(b'{"model_id": "\\ud800", "sample_size": 3}', 422, [], id="half a character as a value"),
    ],
)
async def test_a_body_that_cannot_be(shared_service: Service, body: bytes, status: int | None, words: list[str]) -> None:
    answer = await shared_service.client.post(RUNS, content=body, headers={"content-type": "application/json"})
    assert answer.status_code in ((400, 422) if status is None else (status,)), answer.text
    check_problem(answer, answer.status_code, "VALIDATION_ERROR", *words)


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        pytest.param({}, ["A token is needed", "Authorization: Bearer"], id="no token"),
        pytest.param({"authorization": "Bearer wrong"}, ["is wrong, was revoked"], id="wrong token"),
        pytest.param({"authorization": "Bearer"}, ["is wrong, was revoked"], id="empty token"),
        pytest.param({"authorization": "Basic dXNlcjpwdw=="}, ["is wrong, was revoked"], id="another scheme"),
        pytest.param({"cookie": "benchyard_session=forged"}, ["A token is needed"], id="forged cookie"),
        pytest.param({"cookie": b';;;=\xff\t"'}, ["A token is needed"], id="broken cookie"),
    ],
)
@pytest.mark.parametrize("path", [RUNS, "/api/models", "/api/fleet", "/api/events", "/api/nothing-here"])
async def test_without_the_token(shared_service: Service, headers: dict[str, Any], words: list[str], path: str) -> None:
    for method in ("GET", "POST"):
        answer = await shared_service.stranger.request(method, path, headers=headers)
        check_problem(answer, 401, "UNAUTHORIZED", *words)
        assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_a_page_of_another_site_cannot_post(shared_service: Service) -> None:
    session = await shared_service.services.authority.session_for(OWNER)
    cookie = {"cookie": f"benchyard_session={session}"}
    foreign = {**cookie, "origin": "https://evil.example", "sec-fetch-site": "cross-site"}
    check_problem(await shared_service.stranger.post(RUNS, json=GOOD, headers=foreign), 403, "FORBIDDEN")
    assert (await shared_service.stranger.get(RUNS, headers=cookie)).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        pytest.param("GET", "/api/container-runs/none", 404, "NOT_FOUND", id="unknown run"),
        pytest.param("GET", "/api/container-runs/none/items", 404, "NOT_FOUND", id="items of an unknown run"),
        pytest.param("GET", "/api/container-runs/none/logs", 404, "NOT_FOUND", id="logs of an unknown run"),
        pytest.param("GET", "/api/container-runs/none/stream", 404, "NOT_FOUND", id="stream of an unknown run"),
        pytest.param("POST", "/api/container-runs/none/cancel", 404, "NOT_FOUND", id="cancel an unknown run"),
        pytest.param("POST", "/api/container-runs/none/retry", 404, "NOT_FOUND", id="retry an unknown run"),
        pytest.param("GET", f"/api/container-runs/{'x' * 100}", 422, "VALIDATION_ERROR", id="id too long"),
        pytest.param("GET", "/api/container-runs?limit=0", 422, "VALIDATION_ERROR", id="limit zero"),
        pytest.param("GET", "/api/container-runs?limit=many", 422, "VALIDATION_ERROR", id="limit a word"),
        pytest.param("GET", "/api/container-runs?status=lost", 422, "VALIDATION_ERROR", id="unknown status"),
        pytest.param("GET", "/api/container-runs?after=%00", 422, "VALIDATION_ERROR", id="cursor of NUL"),
        pytest.param("GET", "/api/models/none", 404, "NOT_FOUND", id="unknown model"),
        pytest.param("DELETE", "/api/models/none", 404, "NOT_FOUND", id="delete an unknown model"),
        pytest.param("PUT", "/api/models", 405, "METHOD_NOT_ALLOWED", id="method"),
        pytest.param("GET", "/api/nothing", 404, "NOT_FOUND", id="no such path"),
    ],
)
async def test_a_path_that_cannot_be(shared_service: Service, method: str, path: str, status: int, code: str) -> None:
    check_problem(await shared_service.client.request(method, path), status, code)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        pytest.param({"slug": "Upper Case"}, 422, ["slug"], id="slug"),
        pytest.param({"slug": "demo-strong"}, 409, ["PATCH /api/models/demo-strong"], id="slug is taken"),
        pytest.param({"input_price": -1}, 422, ["input_price"], id="negative price"),
        pytest.param({"params": {"heat": 1}}, 422, ["params.heat: unknown field"], id="unknown parameter"),
        pytest.param({"training_cutoff": "soon"}, 422, ["training_cutoff"], id="date"),
    ],
)
async def test_a_model_that_cannot_be(shared_service: Service, body: dict[str, Any], status: int, words: list[str]) -> None:
    whole = {"slug": "new", "provider": "openai", "name": "n", **body}
    answer = await shared_service.client.post("/api/models", json=whole)
    check_problem(answer, status, "CONFLICT" if status == 409 else "VALIDATION_ERROR", *words)


class TestSize:
    async def test_declared_too_large(self, shared_service: Service) -> None:
        answer = await shared_service.client.post(RUNS, content=b"x" * (1 << 20) + b"x")
        check_problem(answer, 413, "TOO_LARGE", "1048576 bytes")

    async def test_more_than_was_declared_to_come(self, shared_service: Service) -> None:
        sent = 0

        async def endless():  # type: ignore[no-untyped-def]
            nonlocal sent
            while sent < 10_000:
                sent += 1
                yield b"x" * 65536

        try:
            answer = await shared_service.client.post(RUNS, content=endless())
        except (httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError):
            assert sent < 10_000  # cut off while still sending
        else:
            check_problem(answer, 413, "TOO_LARGE")

    async def test_chunks_just_over_the_cap(self, shared_service: Service) -> None:
        async def chunks():  # type: ignore[no-untyped-def]
            yield b"x" * (1 << 20)
            yield b"xx"

        check_problem(await shared_service.client.post(RUNS, content=chunks()), 413, "TOO_LARGE")

    async def test_gzip(self, shared_service: Service) -> None:
        body = gzip.compress(json.dumps(GOOD).encode())
        answer = await shared_service.client.post(RUNS, content=body, headers={"content-encoding": "gzip"})
        check_problem(answer, 415, "VALIDATION_ERROR", "send plain JSON")


async def test_a_slow_body_is_given_up(new_settings: Callable[..., Settings]) -> None:
    async with served(new_settings(request_timeout_s=0.3)) as service:
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        head = f"POST {RUNS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-length: 100\r\n\r\n{{"
        writer.write(head.encode())
        answer = (await asyncio.wait_for(reader.read(), 60)).decode()
        writer.close()
        assert answer.startswith("HTTP/1.1 408 ")
        assert "application/problem+json" in answer
        assert "The body was not whole after 0.3 s" in answer
        assert (await service.client.get("/healthz")).status_code == 200


async def test_a_slow_head_is_cut_off(new_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch) -> None:
    """Slowloris: a line of the head now and then holds no connection for ever."""
    monkeypatch.setattr("orchestrator.serving.timeouts.HEAD_LIMIT_S", 0.3)
    async with served(new_settings()) as service:
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: x\r\n")
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()


class TestOnPostgres:
    """What SQLite takes and PostgreSQL does not."""

    @pytest.fixture
    def dialect(self) -> str:
        return "postgresql"

    async def test_nul_in_a_path(self, migrated_database_url: str, new_settings: Callable[..., Settings]) -> None:
        async with served(new_settings(DATABASE_URL=migrated_database_url)) as service:
            for path in ("/api/container-runs/a%00b", "/api/models/a%00b", "/api/container-runs/a%00b/items"):
                answer = await service.client.get(path)
                assert answer.status_code in (404, 422), answer.text
            for method, path in (("DELETE", "/api/models/%00"), ("POST", "/api/container-runs/%00/cancel")):
                assert (await service.client.request(method, path)).status_code in (404, 422)
            run_id = await service.new_run()
            assert (await service.until(run_id, "completed"))["progress"] == {"done": 3, "total": 3}
            await service.engine.end_all()
