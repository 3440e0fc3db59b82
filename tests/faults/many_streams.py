"""Many clients of server-sent events that behave badly: they reset, freeze, come back, and a few that read."""

from __future__ import annotations

import random
import select
import socket
import struct
import time
from pathlib import Path

from tests.faults.service import TOKEN, Service

KINDS = ("reset", "frozen", "reconnecting", "reading")


class ManyStreams:
    def __init__(self, service: Service, rng: random.Random) -> None:
        self._service, self._rng = service, rng
        self._open: dict[socket.socket, str] = {}
        self.refused = 0
        """Answers other than 200."""
        self.opened = 0

    def open(self, count: int) -> None:
        for number in range(count):
            self._connect(KINDS[number % len(KINDS)])

    def churn(self, seconds: float) -> None:
        """Readers read, some reset or come back all the time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            eager = [each for each, kind in self._open.items() if kind != "frozen"]
            for ready in select.select(eager, [], [], 0.1)[0] if eager else []:
                self._read(ready)
            for each in self._rng.sample(eager, min(5, len(eager))):
                kind = self._open[each]
                if kind == "reading":
                    continue
                if kind == "reset":
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self._close(each)
                self._connect(kind)

    def close(self) -> None:
        """Half of them say goodbye, half of them reset."""
        for number, each in enumerate(list(self._open)):
            if number % 2:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._close(each)

    def _connect(self, kind: str) -> None:
        stream = socket.socket()
        if kind == "frozen":
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        stream.settimeout(300)
        stream.connect(("127.0.0.1", self._service.port))
        again = "Last-Event-ID: 1\r\n" if kind == "reconnecting" else ""
        head = f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n{again}\r\n"
        stream.sendall(head.encode())
        self._open[stream] = kind
        self.opened += 1
        if kind != "frozen":
            first = stream.recv(4096)
            self.refused += not first.startswith(b"HTTP/1.1 200")
        stream.setblocking(False)

    def _read(self, stream: socket.socket) -> None:
        try:
            data = stream.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            kind = self._open[stream]
            self._close(stream)
            self._connect(kind)

    def _close(self, stream: socket.socket) -> None:
        self._open.pop(stream, None)
        stream.close()


def descriptors(service: Service) -> int:
    return len(list(Path(f"/proc/{service.pid}/fd").iterdir()))


def resident_mib(service: Service) -> float:
    lines = Path(f"/proc/{service.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024
