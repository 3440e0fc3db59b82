"""The first steps of a runner, with the standard library only: boot configuration and connection to the orchestrator.

Imports are the slowest part of a start. So claiming a run and reporting the first event work without pydantic, asyncio and
httpx, which load in a thread meanwhile. This module must not import any other package.
"""

import json
import os
import socket
import sys
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from runner.errors import BootRefused

CONTRACT_VERSION = 1  # as in runner.contract, which is too slow to import here; a test compares the two
MAX_LINE = 64 * 1024
NO_ANSWER = (OSError, HTTPException)

PR_SET_DUMPABLE = 4

# A container that changes its network gets a new address: packets of its old connections are lost without any error. A
# model call may be silent for minutes, so a read time-out cannot tell a dead connection from a slow model; the kernel can.
DEAD_AFTER_S = 20
"""A connection is closed after this many seconds of unacknowledged data or of unanswered keep-alive probes."""
FIRST_PROBE_S, PROBE_EVERY_S = 10, 5

SOCKET_OPTIONS: list[tuple[int, int, int]] = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)] + [
    (socket.IPPROTO_TCP, getattr(socket, name), value)
    for name, value in (
        ("TCP_KEEPIDLE", FIRST_PROBE_S),
        ("TCP_KEEPINTVL", PROBE_EVERY_S),
        ("TCP_KEEPCNT", (DEAD_AFTER_S - FIRST_PROBE_S) // PROBE_EVERY_S + 1),
        ("TCP_USER_TIMEOUT", 1000 * DEAD_AFTER_S),
    )
    if hasattr(socket, name)
]


class Boot(NamedTuple):
    """`contract.BootConfig` without pydantic."""

    orchestrator_url: str
    token: str
    instance_type: str
    engine: str
    stand_ready: dict[str, int] | None = None


class Reply(NamedTuple):
    status: int
    body: bytes
    retry_after_s: float | None


def read_boot(fd: int = 0) -> Boot:
    """Reads one line of JSON from `fd` and replaces `fd` with the null device."""
    line = b""
    while b"\n" not in line and len(line) <= MAX_LINE:
        piece = os.read(fd, MAX_LINE)
        if not piece:
            break
        line += piece
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, fd)
    os.close(null)
    try:
        values = json.loads(line.split(b"\n", 1)[0])
        texts = [values[name] for name in Boot._fields[:-1]]
        boot = Boot(texts[0], texts[1], texts[2], texts[3], values.get("stand_ready"))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BootRefused("standard input holds no boot configuration: one line of JSON is expected") from None
    if not all(isinstance(value, str) and value for value in boot[:-1]):
        raise BootRefused("every field of the boot configuration must be a text that is not empty")
    if urlsplit(boot.orchestrator_url).scheme not in ("http", "https"):
        raise BootRefused("orchestrator_url must begin with http:// or https://")
    return boot


def runner_id() -> str:
    """Returns a unique name for this process."""
    return f"{os.uname().nodename}-{os.getpid()}-{os.urandom(6).hex()}"


def boot_facts(boot: Boot) -> dict[str, Any]:
    """Returns what the first event says about the runner."""
    version = ".".join(map(str, sys.version_info[:3]))
    return {"python": version, "engine": boot.engine, "instance_type": boot.instance_type}


def hide_memory() -> None:
    """Prevents other processes of the same user from reading our memory, which holds the token and the expected answers."""
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


class Link:
    """A persistent connection to the orchestrator for the first requests; httpx takes over afterwards."""

    def __init__(self, base_url: str, timeout_s: float = 30.0) -> None:
        parts = urlsplit(base_url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._prefix = parts.path.rstrip("/")
        self._connection = kind(parts.netloc, timeout=timeout_s)

    def post(self, path: str, token: str, body: dict[str, Any]) -> Reply:
        """Posts JSON; raises one of `NO_ANSWER` if there is no complete answer."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        try:
            if self._connection.sock is None:
                self._connection.connect()
                for level, name, value in SOCKET_OPTIONS:
                    self._connection.sock.setsockopt(level, name, value)  # type: ignore[attr-defined] # connect() has set it
            self._connection.request("POST", self._prefix + path, json.dumps(body).encode(), headers)
            answer = self._connection.getresponse()
            return Reply(answer.status, answer.read(), seconds(answer.getheader("Retry-After")))
        except NO_ANSWER:
            self.close()
            raise

    def close(self) -> None:
        self._connection.close()


def seconds(header: str | None) -> float | None:
    """Returns the seconds of a Retry-After header; None for dates and invalid values."""
    try:
        value = float(header or "")
    except ValueError:
        return None
    return value if 0 <= value < 3600 else None


def announce(link: Link, run_id: str, attempt: int, token: str, facts: dict[str, Any]) -> int:
    """Reports the stage `boot` as event 1; returns the highest acknowledged event number. A failure does no harm, because
    the reporter sends the event again."""
    event = boot_event(facts)
    try:
        reply = link.post(f"/runner/runs/{run_id}/events", token, {"attempt": attempt, "events": [event]})
        ack = json.loads(reply.body)["ack_seq"] if 200 <= reply.status < 300 else 0
    except (*NO_ANSWER, ValueError, KeyError, TypeError):
        return 0
    return 1 if isinstance(ack, int) and ack >= 1 else 0


def boot_event(facts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "stage", "seq": 1, "stage": "boot", "facts": facts}
