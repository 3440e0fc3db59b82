"""An S3 server from the package registries, on a port of its own."""

from __future__ import annotations

import socket
import subprocess
import sys
import time

import httpx


class Server:
    """Can be stopped and started again, empty but for one bucket."""

    def __init__(self) -> None:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = int(one.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if self._process is not None:
            return
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while True:
            try:
                httpx.put(f"{self.url}/archives", timeout=5).raise_for_status()
                return
            except httpx.HTTPError:
                assert time.monotonic() < deadline
                assert self._process is not None
                assert self._process.poll() is None
                time.sleep(0.1)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
