"""The service as a background process of this machine: starts it, finds it by the data directory's lock, stops it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator.cli.api.client import Client
from orchestrator.cli.api.connection import Connection, find
from orchestrator.cli.errors import CliError, Refused
from orchestrator.cli.view.text import clean
from orchestrator.settings import Settings
from orchestrator.startup import RUNNER_LISTENER_FAILED, RUNNER_LISTENER_OPEN

LOG_FILE = "benchyard.log"
READY_S = 90.0
RUNNER_LISTENER_S = 10.0
STOP_S = 20.0
KILL_S = 5.0
POLL_S = 0.1


@dataclass(frozen=True)
class Started:
    pid: int
    was_running: bool


def holder(data_dir: Path) -> int | None:
    """The process that holds the data directory's lock, or None. Must not be called while a service is starting, because
    this tries to take the lock itself.
    """
    try:
        with (data_dir / "lock").open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                text = file.read().strip()
                if not text.isdecimal():
                    raise CliError(f"Something holds {data_dir / 'lock'}, and the file does not name the process.") from None
                return int(text)
    except FileNotFoundError:
        return None
    return None


def service_runs(settings: Settings, connection: Connection, client: Client) -> bool:
    """Whether there is a service: BENCHYARD_URL names one, a process holds the data directory, or one accepts its token."""
    if connection.given or holder(settings.data.absolute()) is not None:
        return True
    if connection.token is None:
        return False
    try:
        client.get("/api/benchmarks")
    except CliError:
        return False
    return True


@contextlib.contextmanager
def one_at_a_time(data_dir: Path) -> Iterator[None]:
    """Serialises `up` and `down` of one data directory."""
    data_dir.mkdir(parents=True, exist_ok=True)
    with (data_dir / "turn").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def start(settings: Settings, client: Client, prepare: Callable[[], None]) -> Started:
    """Makes sure that the service runs and is ready. `prepare` is called before a start and may raise."""
    data_dir = settings.data.absolute()
    pid = holder(data_dir)
    if pid is not None:
        _await_ready(client, None, data_dir, 0, f"process {pid} uses {data_dir}")
        _check_ownership(settings)
        return Started(pid, was_running=True)
    prepare()
    log, start_of_log = _open_log(data_dir)
    try:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "orchestrator.cli", "serve"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "BENCHYARD_DATA": str(data_dir)},
        )
    finally:
        os.close(log)
    try:
        _await_ready(client, child, data_dir, start_of_log, "the service was started")
        _check_ownership(settings)
        _await_runner_listener(child, data_dir, start_of_log)
    except BaseException:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(KILL_S)
        raise
    child.returncode = 0  # it outlives this command on purpose
    return Started(child.pid, was_running=False)


def stop(data_dir: Path) -> int | None:
    """Stops the service of this data directory; returns its process id, or None if none ran."""
    pid = holder(data_dir)
    if pid is None:
        return None
    if not _holds_open(pid, data_dir / "lock"):
        raise CliError(
            f"{data_dir / 'lock'} names process {pid}, but another one holds the lock (in a container, perhaps); "
            "stop that one."
        )
    for number, limit_s in ((signal.SIGTERM, STOP_S), (signal.SIGKILL, KILL_S)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            if not _is_alive(pid):
                return pid
            time.sleep(POLL_S / 2)
    raise CliError(f"Process {pid} cannot be stopped.")


def _check_ownership(settings: Settings) -> None:
    """Only the service of this data directory accepts its token."""
    with Client(find(settings)) as client:
        try:
            client.get("/api/models", limit=1)
        except Refused as error:
            raise CliError(
                f"Another Benchyard answers at {client.connection.url}; set BENCHYARD_PORT to a port that is free."
            ) from error


def last_log_lines(data_dir: Path, since: int, most: int = 3) -> str:
    """The last lines of the log after position `since`, for an error message."""
    lines = [line for line in _log_text(data_dir, since).splitlines() if line.strip()]
    return clean(" | ".join(lines[-most:]))[-600:]


def _await_ready(client: Client, child: subprocess.Popen[bytes] | None, data_dir: Path, since: int, what: str) -> None:
    deadline = time.monotonic() + (READY_S if child else READY_S / 6)
    while True:
        if child is not None and child.poll() is not None:
            raise CliError(
                f"The service did not start: {last_log_lines(data_dir, since)} (the log is {data_dir / LOG_FILE})"
            )
        ready, why = client.is_ready()
        if ready or _only_lacks_room(client):
            return
        if time.monotonic() > deadline:
            raise CliError(
                f"{what[:1].upper()}{what[1:]}, but does not become ready at {client.connection.url}: {why or 'no answer'}. "
                f"The log is {data_dir / LOG_FILE}. Was it started with another BENCHYARD_PORT? `benchyard down` stops it."
            )
        time.sleep(POLL_S)


def _only_lacks_room(client: Client) -> bool:
    """The service responds but starts no runs until the disk has space: people can view and delete results."""
    parts = client.readiness().get("parts") or {}
    return bool(parts) and {name for name, part in parts.items() if not part["ok"]} == {"disk"}


def _await_runner_listener(child: subprocess.Popen[bytes], data_dir: Path, since: int) -> None:
    """The runner listener is opened last; without it no run can start."""
    deadline = time.monotonic() + RUNNER_LISTENER_S
    problem, failed = "", False
    while time.monotonic() < deadline and child.poll() is None:
        for line in _log_text(data_dir, since).splitlines():
            with contextlib.suppress(ValueError, AttributeError):
                entry = json.loads(line)
                action = entry.get("action")
                if action == RUNNER_LISTENER_OPEN:
                    return
                if action in (RUNNER_LISTENER_FAILED, "round_failed"):
                    problem, failed = clean(entry.get("error", "")), action == RUNNER_LISTENER_FAILED
        if failed:
            break
        time.sleep(POLL_S)
    raise CliError(f"Runners could not reach the service: {problem or last_log_lines(data_dir, since)}")


def _open_log(data_dir: Path) -> tuple[int, int]:
    """A file descriptor that appends to the log, which only its owner can read, and the position of new lines."""
    path = data_dir / LOG_FILE
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    return number, os.fstat(number).st_size


def _log_text(data_dir: Path, since: int) -> str:
    try:
        with (data_dir / LOG_FILE).open("rb") as file:
            file.seek(since)
            return file.read(1024 * 1024).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def _holds_open(pid: int, path: Path) -> bool:
    """Whether the process has the file open; assumed if /proc does not tell."""
    wanted = path.stat()
    fds = Path(f"/proc/{pid}/fd")
    if not Path("/proc/self/fd").exists():
        return True
    try:
        numbers = list(fds.iterdir())
    except FileNotFoundError:
        return False
    except PermissionError as error:
        raise CliError(f"Process {pid} belongs to another user; stop it as that user.") from error
    for number in numbers:
        with contextlib.suppress(OSError):
            opened = number.stat()
            if (opened.st_dev, opened.st_ino) == (wanted.st_dev, wanted.st_ino):
                return True
    return False


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state != "Z"  # ended, but not reaped by its parent yet
