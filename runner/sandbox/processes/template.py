"""A jailed process from which a supervisor's children are forked: they start inside the jail.

Entering the jail costs more than a fork, and most of it is the same for every child. So a supervisor keeps one process that
already has the user id, Landlock and the filter, and does nothing but fork; only limits remain to be set in each child. An
inherited filter cannot distinguish a template from its children, so what only one of them may do (this one way of forking,
signals to oneself) is referred to the supervisor, which can. Children are siblings of the template; their parent is the
supervisor.
"""

import contextlib
import errno
import fcntl
import gc
import os
import select
import signal
import socket
import struct
from collections.abc import Callable
from typing import NoReturn, Self

from runner.sandbox.kernel import syscalls
from runner.sandbox.kernel.seccomp import CLONE_BY_TEMPLATE
from runner.sandbox.kernel.syscall_numbers import NUMBERS
from runner.sandbox.processes.jail import COMMAND_FD, JOBS_FD, Jail

_QUESTION = struct.Struct("<QIIiIQ6Q")
_ANSWER = struct.Struct("<QqiI")
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_GO_ON = 1
_NOTHING = bytes(_QUESTION.size)
_PID = struct.Struct("<i")
START_S = 10.0


class TemplateGoneError(Exception):
    """The template has died, or this kernel does not support templates."""


class Template:
    """The supervisor's side of a template."""

    def __init__(self, pid: int, command: socket.socket, listener: int) -> None:
        self.pid, self.listener = pid, listener
        self._command = command
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)
        self._poll.register(command.fileno(), select.POLLIN)
        self._clone = NUMBERS[syscalls.ARCH]["clone"]

    @classmethod
    def start(cls, jail: Jail, jobs: int, run_child: Callable[[socket.socket], NoReturn], floor: int) -> Self | None:
        """Starts a template whose children call `run_child`; returns None if the kernel or its policy lacks such filters."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = syscalls.raw_fork()
        if pid == 0:
            _serve_forks(jail, theirs, jobs, run_child)
        theirs.close()
        ours.settimeout(START_S)
        fds: list[int] = []
        with contextlib.suppress(OSError):
            _, fds, _, _ = socket.recv_fds(ours, 16, 1)
        ours.settimeout(None)
        if not fds:
            ours.close()
            os.waitpid(pid, 0)
            return None
        listener = fcntl.fcntl(fds[0], fcntl.F_DUPFD_CLOEXEC, floor)
        os.close(fds[0])
        return cls(pid, ours, listener)

    def fork(self) -> int:
        """Forks a child and returns its pid; raises OSError if that is not possible now."""
        try:
            self._command.send(b"f")
            while True:
                ready = [fd for fd, _ in self._poll.poll()]
                if self.listener in ready:
                    self.answer(0)
                if self._command.fileno() in ready:
                    message = self._command.recv(_PID.size)
                    break
        except OSError as error:
            raise TemplateGoneError(str(error)) from None
        if not message:
            raise TemplateGoneError("connection closed")
        (pid,) = _PID.unpack(message)
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        return int(pid)

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._command.close()
        os.close(self.listener)

    def answer(self, running: int) -> None:
        """Decides about one call: the template may fork, and the running program may send signals to itself."""
        try:
            number, caller, _, call, _, _, first, *_ = _QUESTION.unpack(fcntl.ioctl(self.listener, _RECEIVE, _NOTHING))
            who, may = (caller, self.pid) if call == self._clone else (first & 0xFFFFFFFF, running)
            allowed = who == may and who > 0
            refusal = 0 if allowed else -errno.EPERM
            fcntl.ioctl(self.listener, _SEND, _ANSWER.pack(number, 0, refusal, _GO_ON if allowed else 0))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EINTR):  # it was killed while it waited for the decision
                raise TemplateGoneError(str(error)) from None


def _serve_forks(jail: Jail, command: socket.socket, jobs: int, run_child: Callable[[socket.socket], NoReturn]) -> NoReturn:
    try:
        fork = syscalls.sibling_fork(CLONE_BY_TEMPLATE)
        jail.enter_as_template(command, jobs)
        inherited_jobs = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, JOBS_FD)
        gc.collect()
        gc.freeze()
        while os.read(COMMAND_FD, 1):
            try:
                pid = fork()
            except OSError as error:
                pid = -(error.errno or errno.EAGAIN)
            if pid == 0:
                run_child(inherited_jobs)
            os.write(COMMAND_FD, _PID.pack(pid))
    finally:
        os._exit(0)
