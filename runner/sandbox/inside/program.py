"""Runs one program the way `python solution.py` would: standard streams, `__main__`, exit, what happens at the end."""

import _thread
import atexit
import builtins
import contextlib
import fcntl
import gc
import io
import json
import linecache
import os
import random
import signal
import sys
import threading
import traceback
import types
from dataclasses import dataclass, field
from typing import Any

from runner.sandbox.inside.prelude import RECURSION_LIMIT, namespace
from runner.sandbox.wire import CODE_FD

NAME = "solution.py"
KEPT_FROM = 24
FINISHED, RAISED, OUT_OF_MEMORY = b"f", b"x", b"m"
_RESET = (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


def read_payload() -> dict[str, Any]:
    """What the runner put on the code descriptor."""
    size = os.fstat(CODE_FD).st_size
    payload: dict[str, Any] = json.loads(os.pread(CODE_FD, size, 0))
    os.close(CODE_FD)
    return payload


@dataclass
class Interpreter:
    """The state that a program can change and the next test must find as new."""

    kept: tuple[int, ...] = field(default_factory=lambda: tuple(_keep(fd) for fd in (0, 1, 2)))
    """A program may close its streams; `open(0)` does so when it is collected."""
    names: dict[str, Any] = field(default_factory=lambda: dict(vars(builtins)))
    path: list[str] = field(default_factory=lambda: list(sys.path))
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    digits: int = field(default_factory=sys.get_int_max_str_digits)
    recursion: int = field(default_factory=sys.getrecursionlimit)
    folder: str = field(default_factory=os.getcwd)
    used: bool = False

    def fresh_main(self, prelude: bool) -> types.ModuleType:
        """Standard streams, settings and `__main__` as at the start of a process."""
        if self.used:
            self._reset()
        self.used = True
        stdin = io.TextIOWrapper(
            io.BufferedReader(io.FileIO(0, "r", closefd=False), 65536), "utf-8", "surrogateescape", "\n"
        )
        stdout = io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(1, "w", closefd=False), 65536), "utf-8", "surrogateescape", "\n"
        )
        stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115
        for stream, name, mode in ((stdin, "<stdin>", "r"), (stdout, "<stdout>", "w"), (stderr, "<stderr>", "w")):
            _label(stream, name, mode)
        sys.stdin = sys.__stdin__ = stdin  # type: ignore[misc]
        sys.stdout = sys.__stdout__ = stdout  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = stderr  # type: ignore[misc]
        main = types.ModuleType("__main__")
        if prelude:
            sys.setrecursionlimit(RECURSION_LIMIT)
            main.__dict__.update(namespace())
            main.__dict__.update(__name__="__main__", stdin=stdin, stdout=stdout, stderr=stderr)
        main.__dict__.update(__file__=NAME, __builtins__=builtins)
        sys.modules["__main__"] = main
        sys.argv = [NAME]
        return main

    def _reset(self) -> None:
        for number, fd in enumerate(self.kept):
            os.dup2(fd, number)
        os.lseek(0, 0, os.SEEK_SET)
        now = builtins.__dict__
        for name in now.keys() - self.names.keys():
            del now[name]
        now.update(self.names)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for each in _RESET:
            if signal.getsignal(each) is not signal.SIG_DFL:
                signal.signal(each, signal.SIG_DFL)
        sys.settrace(None)
        sys.setprofile(None)
        sys.setrecursionlimit(self.recursion)
        sys.set_int_max_str_digits(self.digits)
        sys.excepthook = sys.__excepthook__
        sys.path[:] = self.path
        threading.stack_size(0)
        random.seed(0)
        gc.enable()
        if os.environ != self.environment:
            os.environ.clear()
            os.environ.update(self.environment)
        if decimal := sys.modules.get("decimal"):
            decimal.setcontext(decimal.Context())
        os.chdir(self.folder)


def _keep(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, KEPT_FROM)


def _label(stream: Any, name: str, mode: str) -> None:
    """Name a stream as the interpreter does; fast readers that people paste ask for the mode."""
    stream.buffer.raw.name, stream.mode = name, mode


def show_exception(source: str) -> None:
    """Print the current exception as the interpreter would, with the program's own lines."""
    linecache.cache[NAME] = (len(source), None, source.splitlines(keepends=True), NAME)
    kind, error, trace = sys.exc_info()
    with contextlib.suppress(BaseException):
        if sys.excepthook is not sys.__excepthook__ and kind is not None and error is not None:
            sys.excepthook(kind, error, trace)
        else:
            traceback.print_exception(kind, error, trace.tb_next if trace else None)


def exit_status(error: SystemExit) -> int:
    """The status that a process has which ends with this."""
    code = error.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 255
    with contextlib.suppress(BaseException):
        sys.stderr.write(f"{code}\n")
    return 1


def wind_up(main: types.ModuleType) -> bool:
    """What the interpreter does at its end: wait for threads, exit handlers, flush. False if something failed."""
    well = True
    streams = sys.__stdout__, sys.__stderr__
    try:
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
    except BaseException:
        well = False
    well = _flush(sys.stdout) and well
    _flush(sys.stderr)
    with contextlib.suppress(BaseException):
        sys.stdout = sys.__stdout__
        main.__dict__.clear()  # destructors of globals: files around descriptor 1 are flushed here
        gc.collect()
    for stream in streams:
        _flush(stream)
    return well


def _flush(stream: Any) -> bool:
    try:
        if stream is not None and not stream.closed:
            stream.flush()
    except BaseException:
        return False
    return True


def has_company() -> bool:
    """Is a thread of the program still running? Then this process can't serve another test."""
    return _thread._count() > 0
