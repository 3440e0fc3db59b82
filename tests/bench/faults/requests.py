"""Hostile requests from outside, while a run goes on (F23): slow, huge, deep, compressed, mistyped, unauthorised."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.bench.faults.fault import Fault
from tests.bench.faults.invariants import resident_mib
from tests.bench.faults.kinds import open_kinds
from tests.bench.faults.scene import Scene
from tests.faults.service import TOKEN

RUNS = "/api/container-runs"
MORE_MIB = 50
QUICK_S = 5
SLOW_CLIENTS = 50
BODY_GB = 10
TIME_LIMIT_S = 30
GOOD = {"model_id": "demo-strong", "sample_size": 3}
VALUES: tuple[object, ...] = (None, True, -1, 0, 2**70, 1e308, "", "\x00", "x" * 5000, [], [[]], {}, {"a": {}}, "\ud800")
BODIES = (
    b"[" * 200_000,
    b'{"a":' * 200_000,
    b'{"model_id": NaN, "sample_size": Infinity}',
    b'{"sample_size": ' + b"9" * 50_000 + b"}",
    b"\xff\xfe\x00",
    b"",
    b"null",
    b'"' + b"x" * 1_000_000 + b'"',
)
PATHS = (
    RUNS,
    "/api/models",
    "/api/batches",
    "/api/tokens",
    "/api/traces?format=jsonl",
    "/login",
    "/runner/claim",
    "/runs/new",
)
AUTHORISATIONS = ("", "Bearer", "Bearer wrong", "Basic dXNlcjpwdw==", f"Bearer {TOKEN}x", f"Bearer {TOKEN}", "Bearer \x7f")


class Requests:
    """What was answered, and how slowly."""

    def __init__(self, scene: Scene, rng: random.Random) -> None:
        self.scene, self.rng = scene, rng
        self.troubles: list[str] = []
        self.slowest_s = 0.0

    def _sent(self, name: str, send: Callable[[httpx.Client], httpx.Response], *, answered: bool = True) -> None:
        began = time.monotonic()
        try:
            with httpx.Client(base_url=self.scene.service.url, timeout=600, trust_env=False) as client:
                answer = send(client)
        except httpx.TransportError as error:
            if answered:
                self.troubles.append(f"{name}: {type(error).__name__}: {error}")
            return
        finally:
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        if answer.status_code >= 500:
            self.troubles.append(f"{name}: {answer.status_code} {answer.text[:200]}")

    def body(self) -> None:
        content, path, authorisation = self.rng.choice(BODIES), self.rng.choice(PATHS), self.rng.choice(AUTHORISATIONS)
        headers = {"content-type": "application/json", "authorization": authorisation.encode()}
        name = f"{content[:20]!r} to {path} as {authorisation[:12]}"
        self._sent(name, lambda client: client.post(path, content=content, headers=headers), answered=False)  # type: ignore[arg-type]

    def wrong_types(self) -> None:
        fields = ("model_id", "sample_size", "benchmarks", "params", "deadline_s", "concurrency", "priority", "ids", "seed")
        wrong = {**GOOD, self.rng.choice(fields): self.rng.choice(VALUES), self.rng.choice(fields): self.rng.choice(VALUES)}
        wrong["instance_type"] = "no such type"  # so that none of them becomes a run
        content = json.dumps(wrong).encode()
        headers = {"content-type": "application/json", "authorization": f"Bearer {TOKEN}"}
        self._sent(f"{content[:200]!r}", lambda client: client.post(RUNS, content=content, headers=headers))

    def gzip_bomb(self) -> None:
        bomb = gzip.compress(bytes(100 << 20))
        headers = {"content-type": "application/json", "content-encoding": "gzip", "authorization": f"Bearer {TOKEN}"}
        path = self.rng.choice(PATHS)
        self._sent(f"gzip bomb to {path}", lambda client: client.post(path, content=bomb, headers=headers), answered=False)

    def ten_gigabytes(self) -> None:
        """Declared or not: cut off long before its end."""
        declared = self.rng.random() < 0.5
        sent = 0

        def endless() -> Iterator[bytes]:
            nonlocal sent
            while sent < BODY_GB << 30:
                sent += 1 << 20
                yield bytes(1 << 20)

        headers = {"authorization": f"Bearer {TOKEN}"} | ({"content-length": str(BODY_GB << 30)} if declared else {})
        self._sent("10 GB", lambda client: client.post(RUNS, content=endless(), headers=headers), answered=False)
        if sent > 1 << 30:
            self.troubles.append(f"took {sent >> 20} MiB of a body that is too large")

    def slow_clients(self) -> None:
        """Heads and bodies that come a byte at a time."""
        head = f"POST {RUNS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\ncontent-length: 100\r\n"
        with contextlib.ExitStack() as stack:
            sockets = []
            for number in range(SLOW_CLIENTS):
                client = stack.enter_context(socket.create_connection(("127.0.0.1", self.scene.service.port), 60))
                client.sendall((head + ("\r\n{" if number % 2 else "")).encode())
                sockets.append(client)
            end = time.monotonic() + TIME_LIMIT_S + 25
            while sockets and time.monotonic() < end:
                time.sleep(0.5)
                sockets = [client for client in sockets if _still_open(client)]
            if sockets:
                self.troubles.append(f"{len(sockets)} of {SLOW_CLIENTS} slow clients were not cut off")


def _still_open(client: socket.socket) -> bool:
    try:
        client.sendall(b"x")
        client.setblocking(False)
        while True:
            if not client.recv(65536):
                return False
    except BlockingIOError:
        client.setblocking(True)
        return True
    except OSError:
        return False


def hostile(scene: Scene, rng: random.Random) -> float | None:
    run_id = scene.submit(24)
    before = resident_mib(scene.service.pid) or 0.0
    most = [before]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            most[0] = max(most[0], resident_mib(scene.service.pid) or 0.0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    requests = Requests(scene, rng)
    try:
        kinds = [requests.body] * 10 + [requests.wrong_types] * 10 + [requests.gzip_bomb, requests.ten_gigabytes]
        rng.shuffle(kinds)
        with ThreadPoolExecutor(4) as pool:
            slow = pool.submit(requests.slow_clients)
            list(pool.map(lambda send: send(), kinds))
            slow.result()
        connection = http.client.HTTPConnection("127.0.0.1", scene.service.port, timeout=60)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()
    finally:
        over.set()
        watcher.join()
    assert not requests.troubles, requests.troubles[:3]
    if scene.extras.setdefault("warm", False):  # the first time, code is loaded and caches fill
        assert most[0] - before <= MORE_MIB, f"{before:.0f} MiB before, {most[0]:.0f} MiB at most"
    scene.extras["warm"] = True
    assert scene.service.wait_status(run_id, "completed")["attempt"] == 1
    return None


FAULTS = [Fault("F23", "hostile requests while a run goes on", QUICK_S, hostile, alone=True, open=open_kinds)]
