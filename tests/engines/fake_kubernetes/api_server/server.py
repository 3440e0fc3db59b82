"""The HTTP side of the fake API server: connections that can be refused, cut, slow or filled with nonsense."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from tests.engines.fake_kubernetes.api_server.faults import Fault, Faults, Harm
from tests.engines.fake_kubernetes.api_server.requests import Answer, Api, Request
from tests.engines.fake_kubernetes.api_server.watches import CutOff
from tests.engines.fake_kubernetes.objects.answers import Json


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], api: Api, faults: Faults) -> None:
        self.api = api
        self.faults = faults
        self.open: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def process_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
        super().shutdown_request(request)
        self.open.discard(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Listener

    def log_message(self, format: str, *args: object) -> None: ...

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        fault = self.server.faults.take(f"{self.command} {self.path}")
        try:
            self._answer(fault, body)
        except CutOff:
            with contextlib.suppress(OSError):
                self.wfile.flush()
            self._cut()
        except (OSError, ValueError):
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _answer(self, fault: Fault | None, body: bytes) -> None:
        harm = fault.harm if fault else None
        if fault and harm is Harm.REQUEST_LOST:
            raise CutOff
        if fault and harm is Harm.HANGS:
            fault.released.wait()
        if fault and harm is Harm.REFUSED and fault.refusal:
            self._send(Answer(fault.refusal.code, fault.refusal.body(), fault.refusal.headers), harm)
            return
        answer = self.server.api.answer(self._request(body))
        if fault and harm is Harm.HANGS_AFTER:
            fault.released.wait()
        if harm is Harm.ANSWER_LOST:
            raise CutOff
        if isinstance(answer.body, (bytes, dict)):
            self._send(answer, harm)
        else:
            self._stream(answer.body)

    def _request(self, body: bytes) -> Request:
        parts = urlsplit(self.path)
        return Request(
            method=self.command,
            path=parts.path,
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            body=json.loads(body) if body else None,
            content_type=self.headers.get("Content-Type", "application/json").partition(";")[0],
            authorization=self.headers.get("Authorization"),
        )

    def _send(self, answer: Answer, harm: Harm | None) -> None:
        assert isinstance(answer.body, (bytes, dict))
        text = _encoded(answer.body) if harm is not Harm.NONSENSE else b"<html>gateway"
        self.send_response(answer.status)
        plain = isinstance(answer.body, bytes)
        self.send_header("Content-Type", "text/plain" if plain else "application/json")
        self.send_header("Content-Length", str(len(text)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if harm is Harm.HALF_ANSWER:
            self.wfile.write(text[: len(text) // 2])
            raise CutOff
        self.wfile.write(text)
        self.wfile.flush()

    def _stream(self, lines: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        for line in lines:
            if line:
                self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _cut(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _encoded(body: Json | bytes) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


class Server:
    """Listens on one port of 127.0.0.1, which it keeps over `down` and `up`."""

    def __init__(self, api: Api, faults: Faults) -> None:
        self._api = api
        self._faults = faults
        self._listener: _Listener | None = None
        self._thread: threading.Thread | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def up(self) -> None:
        self._api.watches.reopen()
        self._listener = _Listener(("127.0.0.1", self._port), self._api, self._faults)
        self._port = int(self._listener.server_address[1])
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.02,), name="fake API", daemon=True)
        self._thread.start()

    def down(self) -> None:
        """Connections are refused, and those that are open are cut."""
        if self._listener is None or self._thread is None:
            return
        self._api.watches.close()
        self._listener.shutdown()
        self._thread.join()
        self._listener.server_close()
        for connection in [*self._listener.open]:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._listener = self._thread = None
