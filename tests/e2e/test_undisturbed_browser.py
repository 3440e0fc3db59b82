"""The browser of these tests takes no notice of networks that an engine makes: both kinds of test can run side by side."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser

from tests.e2e.browsing import PATIENCE_S, until
from tests.faults.service import docker

pytestmark = [pytest.mark.browser, pytest.mark.engine]

AT_ONCE = 6
"""Connections that Chromium opens to one server; further requests wait, and those a change of network would end."""
REQUESTS = 3 * AT_ONCE
FETCH_ALL = """count => { window.answers = []; for (let number = 0; number < count; number++)
    fetch(`/held/${number}`).then(answer => answer.text()).catch(String).then(text => window.answers.push(text)) }"""


class HoldingServer(ThreadingHTTPServer):
    """Answers `/` at once, and what is below `/held/` when it may."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), HoldingHandler)
        self.held = 0
        self.release = threading.Event()


class HoldingHandler(BaseHTTPRequestHandler):
    server: HoldingServer

    def do_GET(self) -> None:
        if self.path.startswith("/held/"):
            self.server.held += 1
            self.server.release.wait(PATIENCE_S)
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", "4")
        self.end_headers()
        self.wfile.write(b"fine")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[HoldingServer]:
    with HoldingServer() as holding:
        threading.Thread(target=holding.serve_forever, daemon=True).start()
        yield holding
        holding.release.set()
        holding.shutdown()


def test_a_new_network_ends_no_request(browser: Browser, server: HoldingServer) -> None:
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{server.server_port}/")
    page.evaluate(FETCH_ALL, REQUESTS)
    until(lambda: server.held == AT_ONCE)
    network = f"benchyard-test-{uuid.uuid4().hex[:10]}"
    docker("network", "create", network)
    docker("network", "rm", network)
    server.release.set()
    page.wait_for_function("count => window.answers.length === count", arg=REQUESTS, timeout=PATIENCE_S * 1000)
    assert page.evaluate("window.answers") == ["fine"] * REQUESTS
