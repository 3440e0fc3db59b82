"""The runner's end of the fork server: starts it, requests zygotes and supervisors, gives jobs to a supervisor."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from runner.sandbox.kernel.process_tree import PAGE, resident_pages
from runner.sandbox.pool.memory_files import StreamPool
from runner.sandbox.protocol.messages import BIND_NOW, LONGEST, Job, Report, SupervisorSpec, pack_pid, unpack_pid

START_S = 30.0
ANSWER_S = 10.0
_ROOT = str(Path(__file__).resolve().parents[3])
_ENTRY = (
    "import sys; sys.path.insert(0, sys.argv[1]); from runner.sandbox.processes.fork_server import fork_server_main; "
    "import runner.sandbox.inside; sys.path.remove(sys.argv[1]); fork_server_main(int(sys.argv[2]), sys.argv[3])"
)
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "MALLOC_ARENA_MAX": "1",
}
"""The whole environment that a program can see."""


class GoneError(Exception):
    """A process of the sandbox has died or does not answer; it must be replaced."""


class SandboxLostError(Exception):
    """The sandbox has died and cannot be replaced in this process: nothing can be executed any more."""


async def _receive(ours: socket.socket, seconds: float | None) -> bytes:
    """Returns the next message. Cancellation loses nothing: a message is read only when it can be returned."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    message = ours.recv(LONGEST)
                    break
                except BlockingIOError:
                    await _readable(ours)
    except TimeoutError:
        raise GoneError(f"no answer within {seconds} s") from None
    except OSError as error:
        raise GoneError(f"connection lost ({error})") from None
    if not message:
        raise GoneError("connection closed")
    return message


async def _readable(ours: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    arrived, number = asyncio.Event(), ours.fileno()
    loop.add_reader(number, arrived.set)
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(number)


def _pair() -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    return ours, theirs


def _hang_up(asking: "asyncio.Future[tuple[int, socket.socket]]") -> None:
    if not asking.cancelled() and asking.exception() is None:
        asking.result()[1].close()


class Forker:
    """A process that forks on request: the fork server forks zygotes, a zygote forks supervisors."""

    def __init__(self, ours: socket.socket) -> None:
        self._ours = ours
        self._turn = asyncio.Lock()

    async def hello(self) -> bytes:
        """Returns the first message, sent when the process is ready."""
        return await _receive(self._ours, START_S)

    async def fork(self, name: str, *more: int) -> tuple[int, socket.socket]:
        """Requests a new process that receives `more` descriptors; returns its pid and our end of the connection to it.

        If the caller is cancelled, the reply is still read, so that requests and replies stay in step.
        """
        asking = asyncio.ensure_future(self._fork(name, more))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            asking.add_done_callback(_hang_up)
            raise

    async def _fork(self, name: str, more: tuple[int, ...]) -> tuple[int, socket.socket]:
        ours, theirs = _pair()
        try:
            async with self._turn:
                socket.send_fds(self._ours, [name.encode()], [theirs.fileno(), *more])
                pid = int(await _receive(self._ours, ANSWER_S))
        except BaseException as error:
            ours.close()
            if isinstance(error, OSError):
                raise GoneError(f"can't be asked to fork ({error})") from None
            raise
        finally:
            theirs.close()
        if pid < 0:
            ours.close()
            raise GoneError("it could not fork: too many processes")
        return pid, ours

    def close(self) -> None:
        """Closes the connection; the process then ends."""
        self._ours.close()


class ForkServer(Forker):
    """The exec'ed root of all sandbox processes."""

    def __init__(self, ours: socket.socket, process: "subprocess.Popen[bytes]") -> None:
        super().__init__(ours)
        self._process = process

    @classmethod
    def spawn(cls, settings: dict[str, Any]) -> Self:
        """Executes it with its own environment; it inherits nothing else."""
        ours, theirs = _pair()
        with theirs:
            # Not -I, which would ignore the fixed hash seed. No user site, no script folder on the path.
            command = [sys.executable, "-s", "-P", "-B", "-c", _ENTRY, _ROOT, str(theirs.fileno()), json.dumps(settings)]
            process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                env={**ENVIRONMENT, BIND_NOW: "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        return cls(ours, process)

    async def aclose(self) -> None:
        """Closes the connection and waits until the process is gone."""
        self.close()
        try:
            await asyncio.to_thread(self._process.wait, 10)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(PermissionError):  # it is root, and the runner no longer is
                self._process.kill()
                await asyncio.to_thread(self._process.wait)


class Worker:
    """One supervisor, from the runner's side; it takes one job at a time."""

    def __init__(self, pid: int, control: socket.socket, jobs: socket.socket, stream_pool: StreamPool) -> None:
        self.pid = pid
        self.base_bytes = resident_pages(pid) * PAGE
        self._control, self._jobs = control, jobs
        self._waiting = 0
        """Pid of the child that waits for a job."""
        self._running = 0
        """Pid of the child with the last job, until its end is reported."""
        self._let_go: Callable[[bool], None] | None = None
        self.stream_pool = stream_pool

    @classmethod
    async def open(cls, zygote: Forker, spec: SupervisorSpec, stream_pool: StreamPool) -> Self:
        """Has a zygote fork a supervisor."""
        jobs, theirs = _pair()
        try:
            with theirs:
                pid, control = await zygote.fork(spec.pack(), theirs.fileno())
        except BaseException:
            jobs.close()
            raise
        return cls(pid, control, jobs, stream_pool)

    async def ready(self) -> int:
        """Returns the pid of a child that waits for a job; the previous child is gone by then."""
        if self._running:
            await self.report(ANSWER_S)
        if not self._waiting:
            self._waiting = unpack_pid(await _receive(self._control, ANSWER_S))
        if not self._waiting:
            raise GoneError("it could not fork: too many processes")
        return self._waiting

    def start(self, job: Job, program: bytes, fds: list[int]) -> None:
        """Gives the waiting child its job."""
        try:
            socket.send_fds(self._jobs, [job.pack(), program], fds)
        except OSError as error:
            raise GoneError(f"the child can't be reached ({error})") from None
        self._running, self._waiting = self._waiting, 0

    def dismiss(self, let_go: Callable[[bool], None]) -> None:
        """Ends the child without waiting. Calls `let_go` with True when it is gone, with False if that stays unknown."""
        self.kill()
        self._let_go = let_go

    def kill(self) -> None:
        """Kills the child; harmless if it has ended."""
        try:
            self._control.send(pack_pid(self._running))
        except OSError as error:
            raise GoneError(f"the supervisor can't be reached ({error})") from None

    async def report(self, seconds: float | None = None) -> Report:
        """Waits for the end of the child."""
        report = Report.unpack(await _receive(self._control, seconds))
        self._running, self._waiting = 0, report.next_pid
        self._release(gone=True)
        return report

    def _release(self, *, gone: bool) -> None:
        let_go, self._let_go = self._let_go, None
        if let_go is not None:
            let_go(gone)

    @property
    def closed(self) -> bool:
        """Whether the connection is closed."""
        return self._control.fileno() < 0

    def close(self) -> None:
        """Closes the connection; the supervisor kills its child and ends."""
        self._release(gone=False)
        self._control.close()
        self._jobs.close()
