"""Prices, headers, retries, providers, addresses, keys of calls: tables of what goes in and what must come out."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.gateway.calls import request_hash, sample_index
from orchestrator.gateway.edge.errors import Code, GatewayError, UpstreamError
from orchestrator.gateway.edge.router import WIRES
from orchestrator.gateway.ledger.prices import Prices, cost_nano_usd, nano_usd, usd, worst_case_nano_usd
from orchestrator.gateway.pacing.retry import RetryPolicy, exhausted_for_s, retry_after_s
from orchestrator.gateway.protocols.protocol import TokenUsage
from orchestrator.gateway.upstream.providers import BadProvider, providers_from_env
from orchestrator.outbound.addresses import CHECKED_S, AddressRefused, refusal
from orchestrator.outbound.transports import PinnedTransport
from runner.contract.run_spec import Protocol

NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)
PRICES = Prices(Decimal("3"), Decimal("15"), cached_input_per_mtok=Decimal("0.3"), cache_write_per_mtok=Decimal("3.75"))

PUBLIC = functools.partial(refusal, allow_private=False)
ALL = functools.partial(refusal, allow_private=True)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (TokenUsage(), 0),
        (TokenUsage(1000, 100), 1000 * 3000 + 100 * 15000),
        (TokenUsage(1000, 100, cached_tokens=400, cache_write_tokens=100), 500 * 3000 + 400 * 300 + 100 * 3750 + 1_500_000),
        (TokenUsage(0, 100, reasoning_tokens=90), 1_500_000),
    ],
    ids=["nothing", "plain", "cached", "reasoning is part of output"],
)
def test_cost(usage: TokenUsage, expected: int) -> None:
    assert cost_nano_usd(usage, PRICES) == expected


def test_cost_without_cache_prices_is_the_input_price_and_fractions_round_up() -> None:
    assert cost_nano_usd(TokenUsage(10, 0, 10, 0), Prices(Decimal("2"), Decimal("2"))) == 20_000
    assert cost_nano_usd(TokenUsage(1, 0), Prices(Decimal("0.0375"), Decimal(0))) == 38


def test_no_usage_costs_more_than_the_worst_case() -> None:
    worst = worst_case_nano_usd(1000, 500, PRICES)
    for usage in (TokenUsage(1000, 500), TokenUsage(1000, 500, 1000), TokenUsage(1000, 500, 0, 1000)):
        assert cost_nano_usd(usage, PRICES) <= worst


def test_dollars() -> None:
    assert nano_usd(0.1) == 100_000_000
    assert nano_usd(Decimal("1.00")) == 10**9
    assert usd(nano_usd(12.34)) == 12.34


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "12"}, 12),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Mon, 16 Nov 2026 12:00:30 GMT"}, 30),
        ({"retry-after": "Mon, 16 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e300"}, 86400),
        ({"retry-after": "5, 7"}, 7),
        ({"retry-after-ms": "500, 500"}, 0.5),
    ],
)
def test_retry_after(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after_s(headers, NOW) == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (
            {"anthropic-ratelimit-requests-remaining": "3", "anthropic-ratelimit-requests-reset": "2026-11-16T13:00:00Z"},
            None,
        ),
        ({"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "2026-11-16T12:00:09Z"}, 9),
        (
            {
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-input-tokens-reset": "2026-11-16T12:00:20+00:00",
            },
            20,
        ),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms"}, 0.12),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1h2m3.5s"}, 3723.5),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "soon"}, None),
        ({"x-ratelimit-remaining-requests": "0"}, None),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "2026-11-16T12:00:09Z"}, 9),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": f"{NOW.timestamp() + 9:.0f}"}, 9),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{(NOW.timestamp() + 9) * 1000:.0f}"}, 9),
        ({"x-ratelimit-remaining": "1", "x-ratelimit-reset": "9"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{NOW.timestamp() - 9:.0f}"}, None),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "9"}, 9),
    ],
)
def test_exhausted_limits(headers: dict[str, str], expected: float | None) -> None:
    assert exhausted_for_s(headers, NOW) == expected


def test_backoff_grows_with_jitter_obeys_the_provider_and_ends() -> None:
    policy, rng = RetryPolicy(max_tries=4, total_s=100, base_s=1, longest_s=10), random.Random(1)
    fault = UpstreamError(500, "x", retry=True)
    delays = [policy.delay_s(fault, n, 0, rng) for n in (1, 2, 3)]
    for delay, top in zip(delays, (1, 2, 4), strict=True):
        assert delay is not None
        assert top / 2 <= delay <= top
    assert policy.delay_s(fault, 4, 0, rng) is None
    assert policy.delay_s(fault, 1, 99.9, rng) is None
    asked = policy.delay_s(UpstreamError(429, "x", retry=True, crowded=True, retry_after_s=30), 50, 0, rng)
    assert asked is not None
    assert 30 <= asked <= 33.1
    assert policy.delay_s(UpstreamError(429, "x", retry=True, crowded=True, retry_after_s=101), 1, 0, rng) is None
    assert policy.delay_s(UpstreamError(400, "x", retry=False), 1, 0, rng) is None


def test_providers_from_nothing() -> None:
    found = providers_from_env({})
    assert set(found) == {"anthropic", "openai"}
    assert found["anthropic"].url(Protocol.ANTHROPIC, "/v1/messages") == "https://api.anthropic.com/v1/messages"
    assert found["openai"].url(Protocol.OPENAI_CHAT, "/v1/chat/completions") == "https://api.openai.com/v1/chat/completions"
    assert found["openai"].key_needed
    assert not found["openai"].allow_private


def test_named_providers_and_keys_from_files(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-file\n")
    env = {
        "BENCHYARD_PROVIDER_MY_VLLM_BASE_URL": "http://vllm.lan:8000/v1/",
        "BENCHYARD_PROVIDER_MY_VLLM_ALLOW_PRIVATE": "yes",
        "BENCHYARD_PROVIDER_MY_VLLM_PROTOCOLS": "openai_chat",
        "BENCHYARD_PROVIDER_MY_VLLM_HEADERS": '{"X-Title": "bench"}',
        "BENCHYARD_PROVIDER_LOCAL_BASE_URL": "http://127.0.0.1:11434/v1",
        "OPENAI_API_KEY_FILE": str(file),
        "ANTHROPIC_API_KEY": "sk-env",
        "ANTHROPIC_BASE_URL": "https://proxy.example/anthropic/v1",
    }
    found = providers_from_env(env)
    vllm, local = found["my-vllm"], found["local"]
    assert vllm.url(Protocol.OPENAI_CHAT, "/v1/chat/completions") == "http://vllm.lan:8000/v1/chat/completions"
    assert (vllm.allow_private, vllm.key_needed, vllm.protocols) == (True, False, {Protocol.OPENAI_CHAT})
    assert dict(vllm.headers) == {"X-Title": "bench"}
    assert local.allow_private, "a loopback address that the operator typed is allowed"
    assert found["openai"].key.read(env) == "sk-file"
    file.write_text("sk-rotated")
    assert found["openai"].key.read(env) == "sk-rotated"
    assert found["anthropic"].key.read(env) == "sk-env"
    assert found["anthropic"].url(Protocol.ANTHROPIC, "/v1/messages") == "https://proxy.example/anthropic/v1/messages"
    assert "sk-env" not in repr(found)


def test_a_kind_with_a_known_address_needs_no_other() -> None:
    env = {"BENCHYARD_PROVIDER_FRENCH_KIND": "mistral", "BENCHYARD_PROVIDER_HOME_KIND": "ollama"}
    found = providers_from_env(env)
    assert (found["french"].base_url, found["french"].configured(env)) == ("https://api.mistral.ai/v1", False)
    assert found["french"].configured(env | {"BENCHYARD_PROVIDER_FRENCH_API_KEY": "sk-test"})
    assert (found["home"].allow_private, found["home"].configured(env)) == (True, True)


def test_answers_bought_in_another_form_are_not_reused() -> None:
    env = {"BENCHYARD_PROVIDER_X_BASE_URL": "https://x.example/v1"}
    plain = providers_from_env(env)["x"].identity
    azure = env | {"BENCHYARD_PROVIDER_X_KIND": "azure_classic"}
    assert plain == '["https://x.example/v1", []]', "answers stored before there were kinds are still found"
    later = azure | {"BENCHYARD_PROVIDER_X_API_VERSION": "2025-01-01"}
    assert len({plain, *(providers_from_env(each)["x"].identity for each in (azure, later))}) == 3


@pytest.mark.parametrize(
    "env",
    [
        {"BENCHYARD_PROVIDER_X_KIND": "azure"},
        {"BENCHYARD_PROVIDER_X_KIND": "nonsense"},
        {"OPENAI_BASE_URL": "ftp://x"},
        {"OPENAI_BASE_URL": "https://user:secret@x"},
        {"OPENAI_BASE_URL": "https://x:99999/"},
        {"OPENAI_BASE_URL": "https://x/?key=1"},
        {"BENCHYARD_PROVIDER_DEMO_BASE_URL": "https://x"},
        {"BENCHYARD_PROVIDER_A_BASE_URL": "https://x", "BENCHYARD_PROVIDER_A_PROTOCOLS": "smoke"},
        {"BENCHYARD_PROVIDER_A_BASE_URL": "https://x", "BENCHYARD_PROVIDER_A_HEADERS": "[1]"},
    ],
)
def test_bad_providers_are_named(env: dict[str, str]) -> None:
    with pytest.raises(BadProvider, match=r"OPENAI_BASE_URL|BENCHYARD_PROVIDER"):
        providers_from_env(env)


@pytest.mark.parametrize(
    ("address", "private", "refused"),
    [
        ("93.184.216.34", False, False),
        ("2606:2800:220:1::1", False, False),
        ("127.0.0.1", False, True),
        ("127.0.0.1", True, False),
        ("10.0.0.1", False, True),
        ("10.0.0.1", True, False),
        ("100.64.0.1", False, True),
        ("::1", True, False),
        ("fd00::1", True, False),
        ("fd00::1", False, True),
        ("169.254.169.254", True, True),
        ("::ffff:169.254.169.254", True, True),
        ("64:ff9b::a9fe:a9fe", True, True),
        ("2002:a9fe:a9fe::1", True, True),
        ("fe80::1%eth0", True, True),
        ("fd00:ec2::254", True, True),
        ("100.100.100.200", True, True),
        ("192.0.0.192", True, True),
        ("0.0.0.0", True, True),
        ("224.0.0.1", True, True),
        ("255.255.255.255", True, True),
        ("::ffff:10.0.0.1", False, True),
    ],
)
def test_addresses(address: str, private: bool, refused: bool) -> None:
    assert (refusal(address, allow_private=private) is not None) is refused


@pytest.mark.anyio
@pytest.mark.parametrize(
    "answers",
    [["169.254.169.254"], ["93.184.216.34", "169.254.169.254"], ["10.1.2.3"]],
    ids=["metadata", "mixed", "private"],
)
async def test_a_name_that_points_inside_is_not_called(answers: list[str]) -> None:
    async def resolver(host: str, port: int) -> list[str]:
        return answers

    async with PinnedTransport(
        "api.example", lambda address: refusal(address, allow_private=False), resolver=resolver
    ) as transport:
        with pytest.raises(AddressRefused):
            await transport.handle_async_request(httpx.Request("POST", "https://api.example/v1"))
        with pytest.raises(AddressRefused, match="not the host"):
            await transport.handle_async_request(httpx.Request("POST", "https://other.example/v1"))


@pytest.mark.anyio
async def test_connections_are_used_again_and_a_name_is_asked_for_once_in_a_while() -> None:
    now, asked, connections = 0.0, 0, 0

    async def resolver(host: str, port: int) -> list[str]:
        nonlocal asked
        asked += 1
        return ["127.0.0.1"]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

    async def call() -> bytes:
        response = await transport.handle_async_request(httpx.Request("GET", f"http://api.example:{port}/"))
        body = await response.aread()
        await response.aclose()
        return body

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with PinnedTransport(
        "api.example", lambda address: refusal(address, allow_private=True), resolver=resolver, monotonic=lambda: now
    ) as transport:
        assert await asyncio.gather(*(call() for _ in range(3))) == [b"ok"] * 3
        assert await call() == b"ok"
        assert connections <= 3
        assert 1 <= asked <= 3
        before, now = asked, CHECKED_S + 1
        assert await call() == b"ok"
        assert asked == before + 1
    server.close()


@pytest.mark.parametrize(
    ("key", "expected"),
    [("b/p/3/0", 3), ("b/a/slash/p/12/1", 12), ("b/p/x/0", 0), ("", 0), ("3", 0), ("b/p/²/0", 0)],
)
def test_sample_index(key: str, expected: int) -> None:
    assert sample_index(key) == expected


def test_the_form_of_delivery_is_not_part_of_the_question() -> None:
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    streamed = {"stream_options": {"include_usage": True}, "stream": True, **body}
    assert request_hash("p", "/a", body, {}) == request_hash("p", "/a", streamed, {})
    others = [
        request_hash("q", "/a", body, {}),
        request_hash("p", "/b", body, {}),
        request_hash("p", "/a", {**body, "temperature": 0}, {}),
        request_hash("p", "/a", body, {"anthropic-beta": "x"}),
    ]
    assert len({request_hash("p", "/a", body, {}), *others}) == 5


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.path)
@pytest.mark.parametrize("code", list(Code))
def test_every_error_has_its_code_in_every_protocol(wire: Any, code: Code) -> None:
    body = wire.error_body(GatewayError(400, code, "a sentence"))
    assert body["code"] == code
    assert body["error"]["message"] == "a sentence"
    assert body["error"]["type"]
