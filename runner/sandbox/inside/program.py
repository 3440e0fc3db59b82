"""Runs one program the way `python solution.py` would: standard streams, `__main__`, exit, and shutdown.

A child's cost is almost proportional to the memory pages that it touches, and changing an object's reference count touches
its page. So everything here is created before the fork (`Interpreter`), and a first test changes as little of it as
possible.
"""

import _signal  # type: ignore[import-not-found]
import _thread
import atexit
import builtins
import contextlib
import gc
import io
import linecache
import os
import random
import sys
import threading
import traceback
import types
from functools import cache
from typing import Any

from runner.sandbox.inside.prelude import RECURSION_LIMIT, namespace
from runner.sandbox.protocol.messages import CODE_FD

NAME = "solution.py"
STREAMS, KEPT_FROM = (0, 1, 2), 24
FINISHED, RAISED, OUT_OF_MEMORY = b"f", b"x", b"m"
_RESET = (_signal.SIGALRM, _signal.SIGVTALRM, _signal.SIGPROF, _signal.SIGTERM, _signal.SIGUSR1, _signal.SIGUSR2)
_LAST_OWN_NAME = "__file__"


def read_program(size: int) -> bytes:
    """Reads a long program from the code descriptor."""
    program = os.pread(CODE_FD, size, 0)
    os.close(CODE_FD)
    return program


@cache
def _names_of_main(prelude: bool) -> dict[str, Any]:
    names = {**vars(types.ModuleType("__main__")), "__builtins__": builtins}
    if prelude:
        names.update(namespace(), __name__="__main__")
    return {**names, _LAST_OWN_NAME: NAME}


def _new_main(prelude: bool) -> types.ModuleType:
    main = types.ModuleType("__main__")
    main.__dict__.clear()  # an empty dictionary copies another one as a whole, many times as fast
    main.__dict__.update(_names_of_main(prelude))
    return main


class Interpreter:
    """The state that a program can change and that must be reset for the next test."""

    def __init__(self) -> None:
        self.names = dict(builtins.__dict__)
        self.path = list(sys.path)
        self.environ, self.environment = os.environ, dict(_variables())
        self.digits, self.recursion = sys.get_int_max_str_digits(), sys.getrecursionlimit()
        self.folder = os.getcwd()
        self.mains = {prelude: _new_main(prelude) for prelude in (False, True)}
        self.streams = _new_streams()
        self.kept: tuple[int, ...] = ()
        self.used = False
        self.collections = 0
        """Full collections before the test. If there were more since, the program's garbage may be in the old generation."""
        random.seed(0)  # every execution starts from the same state, so that verdicts are reproducible
        self.chance = random.getstate()
        self._install(self.mains[False])

    def begin(self) -> None:
        """Called once in the child. Keeps copies of the streams, which a program may close (`open(0)` does when
        collected)."""
        self.kept = tuple(os.dup2(fd, KEPT_FROM + fd, False) for fd in STREAMS)

    def fresh_main(self, prelude: bool) -> types.ModuleType:
        """Returns a new `__main__`, with standard streams and settings as at the start of a process."""
        if self.used:
            self.reset()
            self.streams = _new_streams()
            main = _new_main(prelude)
        else:
            main = self.mains[prelude]
        if self.used or prelude:
            self._install(main)
        self.used = True
        if prelude:
            sys.setrecursionlimit(RECURSION_LIMIT)
            main.__dict__.update(stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr)
        self.collections = gc.get_count()[2]
        return main

    def _install(self, main: types.ModuleType) -> None:
        stdin, stdout, stderr = self.streams
        sys.stdin = sys.__stdin__ = stdin  # type: ignore[misc]
        sys.stdout = sys.__stdout__ = stdout  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = stderr  # type: ignore[misc]
        sys.modules["__main__"] = main
        sys.argv = [NAME]

    def wind_up(self, main: types.ModuleType) -> bool:
        """Does what the interpreter does at exit: joins threads, runs exit handlers, flushes. False if anything failed."""
        well = True
        streams = sys.__stdout__, sys.__stderr__
        old = gc.get_count()[2] != self.collections
        try:
            if has_company():
                for thread in threading.enumerate():
                    if thread is not threading.current_thread() and not thread.daemon:
                        thread.join()
            atexit._run_exitfuncs()
        except BaseException:
            well = False
        well = flush(sys.stdout) and well
        flush(sys.stderr)
        with contextlib.suppress(BaseException):
            sys.stdout = sys.__stdout__
            _drop_names(main.__dict__)
            gc.collect(2 if old else 1)
        for stream in streams:
            flush(stream)
        return well

    def reset(self) -> None:
        """Restores everything but streams and `__main__` to its initial state."""
        for number, fd in enumerate(self.kept):
            os.dup2(fd, number)
        os.lseek(0, 0, os.SEEK_SET)
        now = builtins.__dict__
        now.update(self.names)
        if len(now) > len(self.names):
            for name in now.keys() - self.names.keys():
                del now[name]
        _signal.setitimer(_signal.ITIMER_REAL, 0)
        for number in _RESET:
            if _signal.getsignal(number) != _signal.SIG_DFL:
                _signal.signal(number, _signal.SIG_DFL)
        sys.settrace(None)
        sys.setprofile(None)
        sys.setrecursionlimit(self.recursion)
        sys.set_int_max_str_digits(self.digits)
        sys.excepthook = sys.__excepthook__
        sys.path[:] = self.path
        threading.stack_size(0)
        random.setstate(self.chance)
        gc.enable()
        vars(os)["environ"] = self.environ
        if _variables() != self.environment:
            os.environ.clear()
            os.environ.update({os.fsdecode(name): os.fsdecode(value) for name, value in self.environment.items()})
        if decimal := sys.modules.get("decimal"):
            decimal.setcontext(decimal.Context())
        os.chdir(self.folder)


def _variables() -> dict[bytes, bytes]:
    """Returns the environment as stored internally: comparing by name would decode every variable twice."""
    return os.environ._data  # type: ignore[attr-defined,no-any-return]


def _new_streams() -> tuple[io.TextIOWrapper, io.TextIOWrapper, io.TextIOWrapper]:
    stdin = _stream(io.BufferedReader(io.FileIO(0, "r", closefd=False), 65536), "surrogateescape", "<stdin>", "r")
    stdout = _stream(io.BufferedWriter(io.FileIO(1, "w", closefd=False), 65536), "surrogateescape", "<stdout>", "w")
    stderr = _stream(io.BufferedWriter(io.FileIO(2, "w", closefd=False)), "backslashreplace", "<stderr>", "w")
    stderr.reconfigure(line_buffering=True)
    return stdin, stdout, stderr


def _stream(buffer: Any, errors: str, name: str, mode: str) -> io.TextIOWrapper:
    """Creates a stream as the interpreter does; popular fast-input snippets read its mode."""
    text = io.TextIOWrapper(buffer, "utf-8", errors, "\n")
    buffer.raw.name = name
    vars(text)["mode"] = mode
    return text


def show_exception(source: str) -> None:
    """Prints the current exception as the interpreter would, with the program's own lines."""
    linecache.cache[NAME] = (len(source), None, source.splitlines(keepends=True), NAME)
    kind, error, trace = sys.exc_info()
    with contextlib.suppress(BaseException):
        if sys.excepthook is not sys.__excepthook__ and kind is not None and error is not None:
            sys.excepthook(kind, error, trace)
        else:
            traceback.print_exception(kind, error, trace.tb_next if trace else None)


def exit_status(error: SystemExit) -> int:
    """Returns the exit status of a process that ends with this exception."""
    code = error.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 255
    with contextlib.suppress(BaseException):
        sys.stderr.write(f"{code}\n")
    return 1


def _drop_names(names: dict[str, Any]) -> None:
    """Clears the program's globals, so that files around descriptor 1 are flushed by their destructors."""
    while names:
        name, value = names.popitem()
        if name == _LAST_OWN_NAME:
            return
        del value


def flush(stream: Any) -> bool:
    """Writes what is buffered; False if that failed."""
    try:
        if stream is not None and not getattr(stream, "closed", False):
            stream.flush()
    except BaseException:
        return False
    return True


def has_company() -> bool:
    """Whether a thread of the program is still running. This process then cannot serve another test."""
    return _thread._count() > 0
