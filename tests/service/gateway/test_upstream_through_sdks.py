"""A real provider behind the gateway: the SDKs get what they would get from it directly, and every fault ends well."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anthropic
import openai
import pytest
from anthropic._constants import ANTHROPIC_API_VERSION

from orchestrator.gateway.pacing.retry import RetryPolicy
from orchestrator.gateway.upstream.http_upstream import HttpUpstream
from orchestrator.gateway.upstream.providers import providers_from_env
from orchestrator.outbound.tls import tls_context
from orchestrator.system.clock import SystemClock
from tests.service.gateway.fake_provider import FakeProvider, Fault, prompt_of
from tests.service.gateway.gateway_parts import QUICK, World, gateway, key, run_context
from tests.service.gateway.gateway_server import serving
from tests.unit.gateway.memory_ledger import MemoryLedger

pytestmark = pytest.mark.anyio

TLS = ssl.create_default_context()
KEY = "sk-canary-7f3a9c"
CLAUDE = {"provider": "anthropic", "model": "claude-test", "slug": "claude-test"}
GPT = {"provider": "openai", "model": "gpt-test", "slug": "gpt-test"}
PROTOCOLS = ["anthropic", "chat", "responses"]


@contextlib.asynccontextmanager
async def provided(
    fake: FakeProvider,
    *,
    ledger: MemoryLedger | None = None,
    idle_s: float = 5.0,
    policy: RetryPolicy = QUICK,
    patience_s: float = 20.0,
    max_answer_bytes: int = 1 << 20,
    certificate: Path | None = None,
    host: str | None = None,
    outside: Mapping[str, str] = MappingProxyType({}),
    **changes: Any,
) -> AsyncIterator[tuple[World, str]]:
    """A gateway before the fake provider, with a Claude run (first token) and a GPT run (second).

    `host` is another name for the provider, `outside` the environment's proxies and authorities.
    """
    tls = TLS if certificate is None else tls_context({**os.environ, **outside})
    async with serving(fake.app(), certificate=certificate) as here:
        url = here if host is None else f"{here.partition('://')[0]}://{host}:{here.rpartition(':')[2]}"
        env = {
            **outside,
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": url,
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": f"{url}/v1",
        }
        upstreams = {
            name: HttpUpstream(provider, env, clock=SystemClock(), idle_s=idle_s, max_answer_bytes=max_answer_bytes, tls=tls)
            for name, provider in providers_from_env(env).items()
        }
        runs = (run_context(**CLAUDE, **changes), run_context(**GPT, **changes, run_id="run-2"))
        async with gateway(*runs, upstreams=upstreams, ledger=ledger, policy=policy, patience_s=patience_s) as world:
            yield world, url
        for upstream in upstreams.values():
            await upstream.close()


async def ask(
    protocol: str, base: str, token: str, prompt: str, *, streamed: bool = False, call_key: str | None = None
) -> dict[str, Any]:
    """Ask through the real SDK; the answer as plain data."""
    headers = key(call_key or f"bench/{prompt}/0/0")
    if protocol == "anthropic":
        async with anthropic.AsyncAnthropic(base_url=base, api_key=token, max_retries=0) as claude:
            question: dict[str, Any] = {
                "model": "claude-test",
                "max_tokens": 100,
                "messages": [{"role": "user", "content": prompt}],
                "extra_headers": headers,
            }
            if streamed:
                async with claude.messages.stream(**question) as stream:
                    return (await stream.get_final_message()).to_dict()
            return (await claude.messages.create(**question)).to_dict()
    async with openai.AsyncOpenAI(base_url=f"{base}/v1", api_key=token, max_retries=0) as gpt:
        if protocol == "chat":
            question = {
                "model": "gpt-test",
                "messages": [{"role": "user", "content": prompt}],
                "max_completion_tokens": 100,
                "extra_headers": headers,
            }
            if streamed:
                options = {"include_usage": True}
                async with gpt.chat.completions.stream(**question, stream_options=options) as chat:
                    return (await chat.get_final_completion()).to_dict()
            return (await gpt.chat.completions.create(**question)).to_dict()
        question = {"model": "gpt-test", "input": prompt, "max_output_tokens": 100, "extra_headers": headers}
        if streamed:
            async with gpt.responses.stream(**question) as response:
                return (await response.get_final_response()).to_dict()
        return (await gpt.responses.create(**question)).to_dict()


async def ask_gateway(world: World, protocol: str, prompt: str, **options: Any) -> dict[str, Any]:
    if protocol == "anthropic":
        return await ask(protocol, world.base("anthropic"), "run-token", prompt, **options)
    return await ask(protocol, world.base("openai"), "run-token-2", prompt, **options)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_the_same_as_from_the_provider(protocol: str, streamed: bool) -> None:
    fake = FakeProvider()
    async with provided(fake) as (world, url):
        direct = await ask(protocol, url, KEY, "hello", streamed=streamed)
        through = await ask_gateway(world, protocol, "hello", streamed=streamed)
        again = await ask_gateway(world, protocol, "hello", streamed=not streamed)
    assert through == direct
    for volatile in ("parsed", "parsed_output", "parsed_arguments"):
        assert volatile not in again or again[volatile] == through[volatile]
    assert _text(protocol, again) == _text(protocol, through)
    assert len(fake.requests) == 2  # one direct, one for the two through the gateway


def _text(protocol: str, answer: dict[str, Any]) -> str:
    if protocol == "anthropic":
        return str(answer["content"][2]["text"])
    if protocol == "chat":
        return str(answer["choices"][0]["message"]["content"])
    return str(answer["output"][1]["content"][0]["text"])


async def test_a_provider_behind_tls(authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an authority of the operator's own; without it the key does not leave the house."""
    fake = FakeProvider()
    async with provided(fake, certificate=authority) as (world, _):
        with pytest.raises(anthropic.APIStatusError, match=r"certificate is not accepted.*BENCHYARD_CA_BUNDLE"):
            await ask_gateway(world, "anthropic", "hello")
    assert not fake.requests
    monkeypatch.setenv("SSL_CERT_FILE", str(authority / "ca.pem"))
    async with provided(fake, certificate=authority) as (world, _):
        for protocol in PROTOCOLS:
            answer = await ask_gateway(world, protocol, f"hello {protocol}", streamed=True)
            assert "answer to hello" in _text(protocol, answer)
    assert len(fake.requests) == len(PROTOCOLS)


async def test_the_key_goes_to_the_provider_and_the_token_does_not() -> None:
    fake = FakeProvider()
    async with provided(fake) as (world, _):
        for protocol in PROTOCOLS:
            await ask_gateway(world, protocol, f"hello {protocol}")
    for path, headers, body in fake.requests:
        assert headers.get("x-api-key" if path == "/v1/messages" else "authorization", "").endswith(KEY)
        assert "run-token" not in str(headers)
        assert "x-benchyard-call" not in headers
        assert body["stream"] is True
    assert fake.requests[0][1]["anthropic-version"] == ANTHROPIC_API_VERSION


RETRIED = {
    "429 with Retry-After": Fault("status", 429, {"retry-after": "0.05"}),
    "429 with milliseconds": Fault("status", 429, {"retry-after-ms": "20"}),
    "408": Fault("status", 408),
    "409": Fault("status", 409),
    "500": Fault("status", 500),
    "503": Fault("status", 503),
    "529": Fault("status", 529),
    "garbage": Fault("garbage"),
    "garbage events": Fault("garbage events"),
    "cut stream": Fault("cut"),
    "short stream": Fault("short"),
    "overloaded in the stream": Fault("streamed error", body={"type": "overloaded_error", "message": "busy"}),
    "slow": Fault("slow", seconds=1.0),
}


OF_THE_PROTOCOL = ("garbage events", "cut stream", "short stream", "overloaded in the stream")
"""Faults that each protocol has its own way to see."""


@pytest.mark.parametrize(
    ("protocol", "name"),
    [("anthropic", name) for name in RETRIED] + [(p, name) for p in ("chat", "responses") for name in OF_THE_PROTOCOL],
)
async def test_passing_trouble_is_overcome(protocol: str, name: str) -> None:
    fault = RETRIED[name]
    fake = FakeProvider(faults=deque([fault, fault]))
    ledger = MemoryLedger()
    async with provided(fake, ledger=ledger, idle_s=0.15) as (world, _):
        answer = await ask_gateway(world, protocol, "hello", streamed=True)
    assert "answer to hello" in _text(protocol, answer)
    assert len(fake.requests) == 3
    (row,) = ledger.rows.values()
    assert row.settlement is not None
    assert row.settlement.tries == row.sends == 3


LASTING = {
    "429": (Fault("status", 429, {"retry-after": "30"}), 429, "RATE_LIMITED", 1),
    "no credit": (
        Fault("status", 429, body={"error": {"code": "insufficient_quota", "message": "pay"}}),
        403,
        "PROVIDER_KEY_REFUSED",
        1,
    ),
    "payment required": (Fault("status", 402), 403, "PROVIDER_KEY_REFUSED", 1),
    "500": (Fault("status", 500), 500, "EXTERNAL_API_ERROR", 4),
    "not to be retried": (Fault("status", 500, {"x-should-retry": "false"}), 500, "EXTERNAL_API_ERROR", 1),
    "400": (Fault("status", 400), 400, "EXTERNAL_API_ERROR", 1),
    "401": (Fault("status", 401), 401, "PROVIDER_KEY_REFUSED", 1),
    "garbage": (Fault("garbage"), 502, "EXTERNAL_API_ERROR", 4),
    "cut stream": (Fault("cut"), 502, "EXTERNAL_API_ERROR", 4),
    "huge body": (Fault("huge body"), 502, "EXTERNAL_API_ERROR", 1),
    "huge line": (Fault("huge line"), 502, "EXTERNAL_API_ERROR", 1),
    "huge stream": (Fault("huge stream"), 502, "EXTERNAL_API_ERROR", 1),
    "redirect": (Fault("redirect", body="http://127.0.0.1:9/v1/messages"), 502, "EXTERNAL_API_ERROR", 1),
    "bad request in the stream": (
        Fault("streamed error", body={"type": "invalid_request_error", "message": "no"}),
        400,
        "EXTERNAL_API_ERROR",
        1,
    ),
}


@pytest.mark.parametrize(
    ("protocol", "name"),
    [("anthropic", name) for name in LASTING] + [("chat", name) for name in ("429", "no credit", "401", "huge stream")],
)
async def test_lasting_trouble_is_the_sdks_own_error(protocol: str, name: str) -> None:
    fault, status, code, tries = LASTING[name]
    fake = FakeProvider(faults=deque([fault] * 9))
    async with provided(fake) as (world, _):
        with pytest.raises((anthropic.APIStatusError, openai.APIStatusError)) as failed:
            await ask_gateway(world, protocol, "hello", streamed=True)
        assert failed.value.status_code == status
        assert failed.value.response.headers["x-benchyard-code"] == code
        assert len(fake.requests) == tries
        fake.faults.clear()
        if status == 429:
            with pytest.raises((anthropic.RateLimitError, openai.RateLimitError)):
                await ask_gateway(world, protocol, "hello")  # the provider asked for more time than a call may take
        else:
            assert await ask_gateway(world, protocol, "hello"), "a failed call may be asked again"


async def test_the_same_type_of_error_as_from_the_provider() -> None:
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long"}}
    fake = FakeProvider(faults=deque([Fault("status", 400, body=error)] * 2))
    async with provided(fake) as (world, url):
        with pytest.raises(anthropic.BadRequestError) as direct:
            await ask("anthropic", url, KEY, "hello")
        with pytest.raises(anthropic.BadRequestError) as through:
            await ask_gateway(world, "anthropic", "hello")
    assert through.value.type == direct.value.type == "invalid_request_error"
    assert "prompt is too long" in through.value.message


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_whole_answer_is_kept_though_the_connection_breaks_at_its_end(protocol: str) -> None:
    fault = Fault("cut after the end") if protocol == "chat" else Fault("whole")
    fake = FakeProvider(faults=deque([fault]))
    async with provided(fake) as (world, _):
        assert await ask_gateway(world, protocol, "hello")
    assert len(fake.requests) == 1


ESCAPED = KEY.replace("-", "\\u002d")
ECHOES = {
    "an error": Fault(
        "status", 401, body={"error": {"message": f"bad key {KEY}", "code": "invalid_api_key", "hint": [KEY]}}
    ),
    "an error with a strange body": Fault("status", 400, body=[f"Bearer {KEY}"]),
    "an error that escapes it": Fault("raw", 403, body=f'{{"error": {{"message": "key {ESCAPED}"}}}}'),
    "a page instead of an answer": Fault("raw", 200, body=f"<html>{KEY}</html>"),
    "an error in the stream": Fault(
        "streamed error", body={"type": "invalid_request_error", "message": f"key {KEY}", "k": KEY}
    ),
    "another address": Fault("redirect", body=f"http://127.0.0.1:9/v1?key={KEY}"),
    "an answer": Fault("echo", body=f"your header was {KEY}"),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", ECHOES)
async def test_a_key_that_the_provider_echoes_is_scrubbed(
    protocol: str, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    fake = FakeProvider(faults=deque([ECHOES[name]] * 9))
    ledger = MemoryLedger()
    async with provided(fake, ledger=ledger) as (world, _):
        try:
            said = str(await ask_gateway(world, protocol, "hello", streamed=True))
        except (anthropic.APIStatusError, openai.APIStatusError) as error:
            said = f"{error.response.text} {error.response.headers} {error.message}"
    assert fake.requests
    assert said
    for place in (said, repr(ledger.rows), *capfd.readouterr()):
        assert KEY not in place
        assert ESCAPED not in place


async def test_a_late_answer_comes_in_a_stream_that_is_kept_alive() -> None:
    fake = FakeProvider(seconds=0.3)
    async with provided(fake, patience_s=0.05) as (world, _):
        for protocol in PROTOCOLS:
            answer = await ask_gateway(world, protocol, f"hello {protocol}", streamed=True)
            assert "answer to hello" in _text(protocol, answer)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_late_error_comes_in_the_stream(protocol: str) -> None:
    fake = FakeProvider(seconds=0.2, faults=deque([Fault("status", 400)]))
    async with provided(fake, patience_s=0.05) as (world, _):
        with pytest.raises((anthropic.APIStatusError, openai.APIError)) as failed:
            await ask_gateway(world, protocol, "hello", streamed=True)
    assert "it did not work" in str(failed.value)


async def test_a_runner_that_hangs_up_finds_the_answer_later() -> None:
    fake = FakeProvider(hold=asyncio.Event())
    async with provided(fake, idle_s=600) as (world, _):
        for number, streamed in enumerate((False, True), 1):
            impatient = asyncio.create_task(ask_gateway(world, "anthropic", f"hello {streamed}", streamed=streamed))
            while len(fake.requests) < number:
                await asyncio.sleep(0.01)
            impatient.cancel()
            assert isinstance((await asyncio.gather(impatient, return_exceptions=True))[0], asyncio.CancelledError)
        fake.hold.set()
        while world.coordinator.open_calls():
            await asyncio.sleep(0.01)
        assert await ask_gateway(world, "anthropic", "hello True")
    assert len(fake.requests) == 2


async def test_many_askers_of_one_call_cost_one_call() -> None:
    fake = FakeProvider(seconds=0.1)
    async with provided(fake) as (world, _):
        answers = await asyncio.gather(
            *(ask_gateway(world, "anthropic", "hello", streamed=number % 2 == 0) for number in range(8))
        )
    assert len({_text("anthropic", answer) for answer in answers}) == 1
    assert len(fake.requests) == 1


async def test_another_question_under_the_same_key_is_refused() -> None:
    fake = FakeProvider(hold=asyncio.Event())
    async with provided(fake, idle_s=600) as (world, _):
        first = asyncio.create_task(ask_gateway(world, "anthropic", "one", call_key="b/p/0/0"))
        while not fake.requests:
            await asyncio.sleep(0.01)
        for _ in ("in flight", "stored"):
            with pytest.raises(anthropic.ConflictError) as refused:
                await ask_gateway(world, "anthropic", "two", call_key="b/p/0/0")
            assert refused.value.error_code == "CONFLICT"
            fake.hold.set()
            await asyncio.wait({first})
        assert await ask_gateway(world, "anthropic", "two", call_key="b/p/0/1")
    assert [prompt_of(body) for _, _, body in fake.requests] == ["one", "two"]
