"""The cluster's API server behind a proxy that cuts the connection at the request of a test's choice.

`kubectl proxy` gives it as plain HTTP on this machine; requests and answers pass through here unread, but for the first line
of each request.
"""

from __future__ import annotations

import re
import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.kubernetes.cluster import Cluster, kubectl

PIECE = 64 * 1024


class ApiProxy:
    def __init__(self, cluster: Cluster, pattern: str, strike: Callable[[], None]) -> None:
        """The first request whose line matches the pattern is not passed on: `strike` is called instead."""
        self._cluster, self._pattern, self._strike = cluster, re.compile(pattern.encode()), strike
        self._once = threading.Lock()
        self.struck = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        command = [kubectl(), "--kubeconfig", str(self._cluster.kubeconfig), "proxy", "--port=0", "--reject-methods=^$"]
        self._kubectl = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._kubectl.stdout is not None
        self._behind = int(self._kubectl.stdout.readline().strip().rpartition(":")[2])
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._listener.close()
        self._kubectl.terminate()
        self._kubectl.wait()
        assert self._kubectl.stdout is not None
        self._kubectl.stdout.close()

    def kubeconfig(self, folder: Path) -> Path:
        path = folder / "proxied.kubeconfig"
        path.write_text(
            f"""\
apiVersion: v1
kind: Config
clusters: [{{name: proxied, cluster: {{server: "http://127.0.0.1:{self.port}"}}}}]
users: [{{name: none, user: {{}}}}]
contexts: [{{name: proxied, context: {{cluster: proxied, user: none}}}}]
current-context: proxied
"""
        )
        return path

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._behind))
                threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
                threading.Thread(target=_pass_on, args=(server, client), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError), client, server:
            while piece := client.recv(PIECE):
                if self._pattern.match(piece) and not self.struck.is_set() and self._once.acquire(blocking=False):
                    self._strike()
                    self.struck.set()
                    return
                server.sendall(piece)
            server.shutdown(socket.SHUT_WR)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(PIECE):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
