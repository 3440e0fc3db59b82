"""A TCP proxy in front of PostgreSQL that cuts connections at a COMMIT: before the server sees it, or before its answer
comes back. Or at once, all of them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.postgres_from_wheel import PostgresFromWheel

COMMIT = b"COMMIT\0"
"""As the client sends it, a query of its own."""


class CuttingProxy:
    def __init__(self, server: PostgresFromWheel) -> None:
        self._server = Path(server.root) / ".s.PGSQL.5432"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._cuts: list[bool] = []
        self.done: list[str] = []
        """What was cut so far."""
        self._open: set[socket.socket] = set()

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{database}"

    def cut(self, *, answer_lost: bool) -> None:
        """Cut at the next COMMIT; with `answer_lost`, the server still carries it out."""
        with self._lock:
            self._cuts.append(answer_lost)

    @property
    def waiting(self) -> int:
        return len(self._cuts)

    @contextmanager
    def serving(self) -> Iterator[CuttingProxy]:
        thread = threading.Thread(target=self._accept, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            for each in list(self._open):
                _hang_up(each)
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(str(self._server))
            except OSError:
                server.close()
                client.close()
                continue
            self._open |= {client, server}
            answer_lost = threading.Event()
            threading.Thread(target=self._to_server, args=(client, server, answer_lost), daemon=True).start()
            threading.Thread(target=self._to_client, args=(server, client, answer_lost), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket, answer_lost: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                if COMMIT in data:
                    with self._lock:
                        cut = self._cuts.pop(0) if self._cuts else None
                    if cut is False:
                        self.done.append("before the server saw it")
                        break
                    if cut:
                        self.done.append("before its answer came back")
                        answer_lost.set()
                server.sendall(data)
        if not answer_lost.is_set():
            self._end(client, server)

    def _to_client(self, server: socket.socket, client: socket.socket, answer_lost: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                if answer_lost.is_set():
                    break
                client.sendall(data)
        self._end(client, server)

    def _end(self, *both: socket.socket) -> None:
        for each in both:
            _hang_up(each)
            self._open.discard(each)


def _hang_up(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
