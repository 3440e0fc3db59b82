"""A runner behind a line that loses, doubles, shuffles and cuts: the program of an image (see images.build).

It runs inside the container, with the standard library only: a server of its own stands between the real runner and the
orchestrator. The runner is told its address instead of the real one; what the orchestrator tells it of the gateway is
changed likewise. What goes wrong is drawn at random, never so often that nothing gets through.
"""

import contextlib
import json
import os
import random
import socket
import sys
import threading
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

LATER_S = 1.0


class Line(ThreadingHTTPServer):
    daemon_threads = True
    real = ""
    here = ""
    chance = random.Random()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Line

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._pass()

    def do_POST(self) -> None:
        self._pass()

    def do_PUT(self) -> None:
        self._pass()

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path.endswith("/events"):
            return self._events(body)
        draw = self.server.chance.random()
        answer = self._forward(body)
        if self.path == "/runner/claim" and answer is not None:
            status, headers, content = answer
            answer = status, headers, content.replace(self.server.real.encode(), self.server.here.encode())
        if answer is None or draw < 0.15:
            return self._hang_up()
        self._answer(*answer, cut=draw < 0.25)

    def _events(self, body: bytes) -> None:
        chance = self.server.chance
        draw = chance.random()
        if draw < 0.15:  # stored, and the answer lost
            self._forward(body)
            return self._hang_up()
        if draw < 0.25:  # doubled
            self._forward(body)
        elif draw < 0.35:  # again, later, when others have come
            threading.Timer(LATER_S * chance.random(), self._forward, (body,)).start()
        elif draw < 0.6:  # out of order, some of them twice, some missing
            batch = json.loads(body)
            events = batch["events"] + chance.sample(batch["events"], chance.randrange(len(batch["events"]) + 1))
            chance.shuffle(events)
            missing = chance.choice(batch["events"])["seq"] if draw < 0.45 else None
            batch["events"] = [event for event in events if event["seq"] != missing]
            if not batch["events"]:
                return self._hang_up()
            body = json.dumps(batch).encode()
        answer = self._forward(body)
        return self._hang_up() if answer is None else self._answer(*answer)

    def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes] | None:
        real = urlsplit(self.server.real)
        link = HTTPConnection(real.hostname or "", real.port or 80, timeout=120)
        kept = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "content-length", "connection")}
        try:
            link.request(self.command, self.path, body if self.command != "GET" else None, kept)
            answer = link.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        except (OSError, HTTPException):
            return None
        finally:
            link.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes, *, cut: bool = False) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if cut and content:
            self.wfile.write(content[: self.server.chance.randrange(len(content))])
            return self._hang_up()
        self.wfile.write(content)

    def _hang_up(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def main() -> None:
    line = sys.stdin.readline()
    boot = json.loads(line)
    server = Line(("127.0.0.1", 0), Handler)
    server.real, server.here = boot["orchestrator_url"].rstrip("/"), f"http://127.0.0.1:{server.server_address[1]}"
    server.chance = random.Random(boot["token"])
    read, write = os.pipe()
    os.write(write, json.dumps({**boot, "orchestrator_url": server.here}).encode() + b"\n")
    os.close(write)
    if os.fork() == 0:
        os.close(read)
        server.serve_forever()
    os.dup2(read, 0)
    os.chdir("/app")
    os.execv("/opt/venv/bin/python", ["/opt/venv/bin/python", "-m", "runner"])


if __name__ == "__main__":
    main()
