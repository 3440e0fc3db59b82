"""Waits on this machine for a browser to bring a code: one small server, one answer, then it is gone."""

from __future__ import annotations

import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

PAGE = b"<!doctype html><title>Benchyard</title><p>The command line is signed in. This page can be closed.</p>"


class Loopback:
    def __init__(self, state: str) -> None:
        self._code: str | None = None
        waiting = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                given = parse_qs(urlsplit(self.path).query)
                right = given.get("state") == [state] and bool(given.get("code"))
                if right:
                    waiting._code = given["code"][0]
                self.send_response(200 if right else 404)
                self.send_header("content-type", "text/html")
                self.end_headers()
                self.wfile.write(PAGE if right else b"")

            def log_message(self, format: str, *args: object) -> None:
                """The code does not belong on the terminal."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._server.timeout = 1.0
        self.port = int(self._server.server_address[1])

    def wait(self, timeout_s: float) -> str | None:
        end = time.monotonic() + timeout_s
        try:
            while self._code is None and time.monotonic() < end:
                self._server.handle_request()
        finally:
            self._server.server_close()
        return self._code
