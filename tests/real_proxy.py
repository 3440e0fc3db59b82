"""A real HTTP proxy (proxy.py) as a process of its own. It alone can resolve names under `.test`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PLUGIN = Path(__file__).parent / "service" / "outbound"


@dataclass(frozen=True)
class RealProxy:
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def asked(self) -> list[str]:
        """What was asked of it so far: method, host and port."""
        return self.log.read_text().splitlines() if self.log.exists() else []


@contextmanager
def real_proxy(place: Path, *options: str) -> Iterator[RealProxy]:
    port_file, log = place / "port", place / "asked"
    command = [sys.executable, "-m", "proxy", "--hostname", "127.0.0.1", "--port", "0", "--port-file", str(port_file)]
    command += ["--num-workers", "1", "--num-acceptors", "1", "--plugins", "proxy_plugin.KnowsNames", *options]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PLUGIN), "PROXY_LOG": str(log), "HOME": str(place)}
    with (place / "output").open("wb") as output:
        process = subprocess.Popen(command, env=env, stdout=output, stderr=output)
    try:
        until = time.monotonic() + 60
        while not (port_file.exists() and port_file.read_text().strip()):
            assert process.poll() is None, (place / "output").read_text()
            assert time.monotonic() < until, "the proxy does not start"
            time.sleep(0.05)
        yield RealProxy(int(port_file.read_text()), log)
    finally:
        process.terminate()
        process.wait(30)
