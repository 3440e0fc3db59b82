"""Model calls through a real proxy, and with certificates from an authority of the operator's own."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import anthropic
import pytest

from orchestrator.gateway.upstream.http_upstream import HttpUpstream
from orchestrator.gateway.upstream.model_lists import ListFailed, list_models
from orchestrator.gateway.upstream.providers import providers_from_env
from orchestrator.outbound.tls import tls_context
from orchestrator.system import event_loop
from orchestrator.system.clock import SystemClock
from tests.real_proxy import RealProxy, real_proxy
from tests.service.gateway.fake_provider import FakeProvider
from tests.service.gateway.gateway_parts import gateway, run_context
from tests.service.gateway.test_upstream_through_sdks import CLAUDE, KEY, PROTOCOLS, ask_gateway, provided
from tests.unit.gateway.memory_ledger import MemoryLedger

HOST = "provider.test"
"""Only the proxy can resolve it."""
CREDENTIALS = "reader:pass%20word"


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealProxy]:
    with real_proxy(tmp_path_factory.mktemp("proxy")) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealProxy]:
    """It wants credentials."""
    with real_proxy(tmp_path_factory.mktemp("guarded"), "--basic-auth", "reader:pass word") as running:
        yield running


@pytest.fixture
def ca(authority: Path) -> dict[str, str]:
    return {"BENCHYARD_CA_BUNDLE": str(authority / "ca.pem")}


@pytest.mark.anyio
@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
async def test_https_goes_through_a_tunnel_that_is_used_again(
    proxy: RealProxy, authority: Path, ca: dict[str, str], variable: str
) -> None:
    fake, before = FakeProvider(), len(proxy.asked)
    outside = {variable: proxy.url, **ca}
    async with provided(fake, certificate=authority, host=HOST, outside=outside) as (world, url):
        for number, protocol in enumerate((*PROTOCOLS, *PROTOCOLS)):
            assert await ask_gateway(world, protocol, f"hello {number}", streamed=number % 2 == 0)
    assert len(fake.requests) == 6
    port = url.rpartition(":")[2]
    assert proxy.asked[before:] == [f"CONNECT {HOST}:{port}"] * 2, "one connection for each of the two providers"
    assert not any(name.startswith("proxy-") for _, headers, _ in fake.requests for name in headers)


@pytest.mark.anyio
async def test_http_goes_through_the_proxy_with_its_credentials(guarded: RealProxy) -> None:
    fake, before = FakeProvider(), len(guarded.asked)
    outside = {"HTTP_PROXY": f"http://{CREDENTIALS}@127.0.0.1:{guarded.port}"}
    async with provided(fake, host=HOST, outside=outside) as (world, url):
        for protocol in PROTOCOLS:
            assert await ask_gateway(world, protocol, f"hello {protocol}")
    assert len(fake.requests) == 3
    assert f"POST {HOST}:{url.rpartition(':')[2]}" in guarded.asked[before:]


@pytest.mark.anyio
async def test_a_tunnel_with_credentials(guarded: RealProxy, authority: Path, ca: dict[str, str]) -> None:
    fake = FakeProvider()
    outside = {"HTTPS_PROXY": f"http://{CREDENTIALS}@127.0.0.1:{guarded.port}", **ca}
    async with provided(fake, certificate=authority, host=HOST, outside=outside) as (world, _):
        assert await ask_gateway(world, "anthropic", "hello")
    assert len(fake.requests) == 1


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_proxy_that_is_itself_behind_tls(authority: Path, tmp_path: Path, ca: dict[str, str], loop: str) -> None:
    """TLS within TLS, on the loop that the service runs on as well."""
    fake = FakeProvider()
    certificate = ("--cert-file", str(authority / "server.pem"), "--key-file", str(authority / "server.key"))

    async def work(outside: Mapping[str, str]) -> None:
        async with provided(fake, certificate=authority, host=HOST, outside=outside) as (world, _):
            assert await ask_gateway(world, "anthropic", "hello")

    with real_proxy(tmp_path, *certificate) as proxy:
        run = asyncio.run if loop == "asyncio" else event_loop.uvloop.run
        run(work({"HTTPS_PROXY": f"https://localhost:{proxy.port}", **ca}))
    assert len(fake.requests) == 1
    assert [line.partition(":")[0] for line in proxy.asked] == [f"CONNECT {HOST}"]


@pytest.mark.anyio
@pytest.mark.parametrize("secured", [True, False], ids=["https", "http"])
@pytest.mark.parametrize(
    ("user", "expected"),
    [("", "wants credentials"), ("reader:wrong-secret@", "wants other credentials")],
    ids=["none", "bad"],
)
async def test_a_proxy_that_wants_credentials_is_named(
    guarded: RealProxy, authority: Path, ca: dict[str, str], secured: bool, user: str, expected: str
) -> None:
    fake, ledger = FakeProvider(), MemoryLedger()
    address = f"http://{user}127.0.0.1:{guarded.port}"
    outside = {"ALL_PROXY": address, **ca}
    certificate = authority if secured else None
    async with provided(fake, certificate=certificate, host=HOST, outside=outside, ledger=ledger) as (world, _):
        with pytest.raises(anthropic.APIStatusError, match="407") as failed:
            await ask_gateway(world, "anthropic", "hello")
    assert expected in failed.value.message
    assert f"127.0.0.1:{guarded.port}" in failed.value.message
    assert "wrong-secret" not in f"{failed.value.response.text} {ledger.rows}"
    assert not fake.requests
    (row,) = ledger.rows.values()
    assert row.sends == 1, "another try would end the same"


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@pytest.mark.anyio
@pytest.mark.parametrize("secured", [True, False], ids=["https", "http"])
async def test_a_proxy_that_is_down_is_named(authority: Path, ca: dict[str, str], secured: bool) -> None:
    fake, ledger, port = FakeProvider(), MemoryLedger(), closed_port()
    outside = {"ALL_PROXY": f"http://127.0.0.1:{port}", **ca}
    certificate = authority if secured else None
    async with provided(fake, certificate=certificate, host=HOST, outside=outside, ledger=ledger) as (world, _):
        with pytest.raises(anthropic.APIStatusError, match=rf"the proxy 127\.0\.0\.1:{port} of ALL_PROXY cannot be used"):
            await ask_gateway(world, "anthropic", "hello")
    assert not fake.requests
    (row,) = ledger.rows.values()
    assert row.lost_sends == 0, "nothing was sent, so nothing was paid"


@pytest.mark.anyio
async def test_a_proxy_that_cannot_connect_is_named(proxy: RealProxy, ca: dict[str, str]) -> None:
    ledger = MemoryLedger()
    env = {
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": f"https://{HOST}:{closed_port()}",
        "HTTPS_PROXY": proxy.url,
        **ca,
    }
    upstream = HttpUpstream(providers_from_env(env)["anthropic"], env, clock=SystemClock())
    async with gateway(run_context(**CLAUDE), upstreams={"anthropic": upstream}, ledger=ledger) as world:
        with pytest.raises(anthropic.APIStatusError, match=f"the proxy .*{proxy.port}"):
            await ask_gateway(world, "anthropic", "hello")
    await upstream.close()
    (row,) = ledger.rows.values()
    assert row.lost_sends == 0


@pytest.mark.anyio
async def test_hosts_of_no_proxy_and_this_machine_are_called_directly(proxy: RealProxy) -> None:
    fake, before = FakeProvider(), len(proxy.asked)
    async with provided(fake, outside={"ALL_PROXY": proxy.url}) as (world, _):
        assert await ask_gateway(world, "anthropic", "hello")
    outside = {"ALL_PROXY": proxy.url, "NO_PROXY": f"other.example, {HOST}"}
    async with provided(fake, host=HOST, outside=outside) as (world, _):
        with pytest.raises(anthropic.APIStatusError, match=f"{HOST} cannot be resolved"):
            await ask_gateway(world, "anthropic", "hello")
    assert proxy.asked[before:] == []


@pytest.mark.anyio
async def test_a_private_address_that_is_written_out_is_refused_through_a_proxy_too(proxy: RealProxy) -> None:
    before = len(proxy.asked)
    env = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": "http://10.0.0.1:80", "HTTP_PROXY": proxy.url}
    upstream = HttpUpstream(providers_from_env(env)["anthropic"], env, clock=SystemClock())
    async with gateway(run_context(**CLAUDE), upstreams={"anthropic": upstream}) as world:
        with pytest.raises(anthropic.APIStatusError, match=r"may not be called: .*private address"):
            await ask_gateway(world, "anthropic", "hello")
    await upstream.close()
    assert proxy.asked[before:] == []


@pytest.mark.anyio
@pytest.mark.parametrize("variable", ["BENCHYARD_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
@pytest.mark.parametrize("through", [True, False], ids=["through a proxy", "directly"])
async def test_an_authority_of_the_operators_own(
    proxy: RealProxy, authority: Path, monkeypatch: pytest.MonkeyPatch, variable: str, through: bool
) -> None:
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    fake = FakeProvider()
    outside = {"HTTPS_PROXY": proxy.url} if through else {}
    host = HOST if through else None
    async with provided(fake, certificate=authority, host=host, outside=outside) as (world, _):
        with pytest.raises(anthropic.APIStatusError, match=r"certificate is not accepted.*BENCHYARD_CA_BUNDLE"):
            await ask_gateway(world, "anthropic", "hello")
    assert not fake.requests
    outside = {**outside, variable: str(authority / "ca.pem")}
    async with provided(fake, certificate=authority, host=host, outside=outside) as (world, _):
        assert await ask_gateway(world, "anthropic", "hello")
    assert len(fake.requests) == 1


@pytest.mark.anyio
async def test_lists_of_models(
    proxy: RealProxy, authority: Path, ca: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(proxy.asked)
    async with provided(FakeProvider(), certificate=authority, host=HOST) as (_, url):
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        env = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": url}
        provider = providers_from_env(env)["anthropic"]
        with pytest.raises(ListFailed, match="the answer was 404"):  # the fake has no list
            await list_models(provider, env, clock=SystemClock(), tls=tls_context({**os.environ, **ca}))
        with pytest.raises(ListFailed, match="BENCHYARD_CA_BUNDLE"):
            await list_models(provider, env, clock=SystemClock())
    assert proxy.asked[before:] == [f"CONNECT {HOST}:{url.rpartition(':')[2]}"] * 2
