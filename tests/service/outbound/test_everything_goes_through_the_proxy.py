"""What goes out besides model calls takes the same proxy and trusts the same authorities: webhooks, downloads, sign-in, the
command line. What runners send to the gateway takes no proxy."""

from __future__ import annotations

import hashlib
import json
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from joserfc.jwk import RSAKey

from orchestrator.alerts.sending.webhooks import AllowedAddresses
from orchestrator.cli.api.client import Client
from orchestrator.cli.api.connection import Connection
from orchestrator.cli.errors import BadUsage, NotReachable
from orchestrator.datasets.errors import DownloadFailed
from orchestrator.datasets.fetching.download import fetch
from orchestrator.datasets.fetching.sources import RemoteFile
from orchestrator.gateway.upstream.secrets.google_tokens import GoogleTokens, NoToken, ServiceAccount
from orchestrator.sign_in.oidc import Client as OidcClient
from orchestrator.sign_in.oidc import Provider, ProviderTrouble
from orchestrator.system.clock import SystemClock
from tests.real_proxy import RealProxy, real_proxy

HOST = "provider.test"
NOBODY = AllowedAddresses([])


@dataclass
class Outside:
    """A server whose name only the proxy knows, with a certificate by the test's authority."""

    port: int
    asked: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealProxy]:
    with real_proxy(tmp_path_factory.mktemp("proxy")) as running:
        yield running


@pytest.fixture(scope="module")
def outside(authority: Path) -> Iterator[Outside]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found.asked.append(f"{self.command} {self.path}")
            self.rfile.read(int(self.headers.get("content-length", 0)))
            body = json.dumps({"issuer": found.url}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A client that does not trust us hangs up."""

    server = Server(("127.0.0.1", 0), Handler)
    found = Outside(server.server_port)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield found
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def environment(proxy: RealProxy, authority: Path, outside: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy.url)
    monkeypatch.setenv("BENCHYARD_CA_BUNDLE", str(authority / "ca.pem"))
    outside.asked.clear()
    proxy.log.unlink(missing_ok=True)


@pytest.fixture
def tunnelled(proxy: RealProxy, outside: Outside) -> Iterator[None]:
    """What the test does comes through the proxy, and nothing else does."""
    yield
    assert outside.asked
    assert set(proxy.asked) == {f"CONNECT {HOST}:{outside.port}"}


@pytest.mark.anyio
@pytest.mark.usefixtures("tunnelled")
async def test_webhooks(outside: Outside) -> None:
    async with httpx.AsyncClient(transport=NOBODY.transport(HOST)) as client:
        assert (await client.post(f"{outside.url}/hook", content=b"{}")).status_code == 200
    assert outside.asked == ["POST /hook"]


@pytest.mark.usefixtures("tunnelled")
@pytest.mark.parametrize("checked", [True, False])
def test_downloads(outside: Outside, tmp_path: Path, checked: bool) -> None:
    file = RemoteFile(f"{outside.url}/data.jsonl")
    target = fetch(file, tmp_path / "data.jsonl", judge=NOBODY.judge if checked else None)
    assert hashlib.sha256(target.read_bytes()).hexdigest()
    assert json.loads(target.read_text()) == {"issuer": outside.url}


@pytest.mark.anyio
async def test_tokens_of_service_accounts(outside: Outside) -> None:
    private = RSAKey.generate_key(2048).as_pem(private=True).decode()
    tokens = GoogleTokens(NOBODY.transport, SystemClock())
    with pytest.raises(NoToken, match="gave no token that can be read"):
        await tokens.token(ServiceAccount("a@example.com", private, "1", f"{outside.url}/token"))
    assert outside.asked == ["POST /token"]


@pytest.mark.anyio
@pytest.mark.usefixtures("tunnelled")
async def test_sign_in(outside: Outside) -> None:
    provider = Provider(OidcClient(outside.url, "id", None, "openid"), SystemClock())
    assert (await provider.metadata())["issuer"] == outside.url
    await provider.close()


@pytest.mark.usefixtures("tunnelled")
def test_the_command_line(outside: Outside) -> None:
    with Client(Connection(outside.url, "token")) as client:
        assert client.readiness() == {"issuer": outside.url}


@pytest.mark.anyio
async def test_without_the_authority_the_error_says_what_to_do(
    outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BENCHYARD_CA_BUNDLE")
    async with httpx.AsyncClient(transport=NOBODY.transport(HOST)) as client:
        with pytest.raises(httpx.ConnectError, match="BENCHYARD_CA_BUNDLE"):
            await client.get(outside.url)
    with pytest.raises(DownloadFailed, match="BENCHYARD_CA_BUNDLE"):
        fetch(RemoteFile(outside.url), tmp_path / "x", judge=NOBODY.judge, sleep=lambda seconds: None)
    provider = Provider(OidcClient(outside.url, "id", None, "openid"), SystemClock())
    with pytest.raises(ProviderTrouble):
        await provider.metadata()
    await provider.close()
    with Client(Connection(outside.url, "token")) as command_line, pytest.raises(NotReachable, match="BENCHYARD_CA_BUNDLE"):
        command_line.get("/api/fleet")
    assert not outside.asked


@pytest.mark.anyio
async def test_a_proxy_that_is_down_is_named(outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://user:secret@127.0.0.1:1")
    async with httpx.AsyncClient(transport=NOBODY.transport(HOST)) as client:
        with pytest.raises(httpx.ConnectError, match=r"the proxy 127\.0\.0\.1:1 of HTTPS_PROXY"):
            await client.get(outside.url)
    with pytest.raises(DownloadFailed, match=r"the proxy 127\.0\.0\.1:1 of HTTPS_PROXY") as failed:
        fetch(RemoteFile(outside.url), tmp_path / "x", judge=NOBODY.judge, sleep=lambda seconds: None)
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize(
    "url", ["https://10.0.0.1/x", "https://169.254.169.254/x", "https://localhost/x", "https://[::1]/x"]
)
def test_what_is_known_here_to_be_private_is_refused_through_a_proxy_too(url: str, proxy: RealProxy, tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match="may not be fetched"):
        fetch(RemoteFile(url), tmp_path / "x", judge=NOBODY.judge)
    assert not proxy.asked


def test_a_bundle_that_cannot_be_read_ends_a_command(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHYARD_CA_BUNDLE", "/nowhere/ca.pem")
    with pytest.raises(BadUsage, match=r"BENCHYARD_CA_BUNDLE=/nowhere/ca\.pem cannot be used"):
        Client(Connection(outside.url, "token"))


RUNNER = """
import asyncio, sys
from runner.llm.client import Prompt, open_client
from runner.contract.run_spec import ModelSpec, Protocol

async def main(url):
    for protocol in (Protocol.ANTHROPIC, Protocol.OPENAI_CHAT):
        client = open_client(ModelSpec(slug="m", provider="p", name="m", protocol=protocol), url, "token")
        try:
            await client.complete(Prompt("", "hello", "1"), "b/p/0/0")
        except Exception:
            pass
        await client.close()

asyncio.run(main(sys.argv[1]))
"""


def test_runners_call_the_gateway_without_any_proxy(proxy: RealProxy) -> None:
    asked: list[str] = []

    class Gateway(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.send_error(400)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    env = {**os.environ, **dict.fromkeys(names, proxy.url)}
    try:
        url = f"http://127.0.0.1:{server.server_port}/gateway/p"
        subprocess.run([sys.executable, "-c", RUNNER, url], env=env, check=True, timeout=120)
    finally:
        server.shutdown()
        server.server_close()
    assert len(asked) == 2
    assert not proxy.asked
