"""Runs a program the way LiveCodeBench's own checker does, defects included. Standard library only.

This file goes into the sandbox as compiled code, after the names that every program gets (`PRELUDE`) and before the
program's source (`SOURCE`); the runner never imports it for that. A program on standard input is wrapped into one function
that reads from a substitute for standard input; a class is instantiated once for all tests. Expected answers are not here:
the runner compares.
"""

import ast
import builtins
import contextlib
import io
import os
import signal
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

SOURCE = ""
PRELUDE: dict[str, Any] = {}
TEST_CPU_S = 6.0
GRACE_S = 1.0
RECURSION_LIMIT = 50_000
HEAD = "pass\n"
"""Stands for the checker's imports: code in front of every program rules out `__future__` imports."""

TAKEN_FROM_OS = (
    "kill system putenv remove removedirs rmdir fchdir setuid fork forkpty killpg rename renames truncate replace unlink "
    "fchmod fchown chmod chown chroot lchflags lchmod lchown getcwd chdir"
)
ARRAYS = "num" + "py"  # spelled in one piece, it would select the slower process that has the package loaded
TAKEN_MODULES = "ipdb joblib resource psutil tkinter"


class TimeoutException(Exception):
    """One test took too long. An Exception, so that a program can swallow it, as in that checker."""


class StandInBuffer:
    """The substitute for `sys.stdin.buffer`."""

    def __init__(self, text: str) -> None:
        self._data = text.encode()

    def read(self, *_: Any) -> bytes:
        return self._data

    def readline(self, *_: Any) -> bytes:
        return self._data.split(b"\n")[0] + b"\n"


class StandIn:
    """The substitute for `sys.stdin`: lines in turn, the whole input again with each `read`, and no iteration.

    That checker also patches `read`, `readline` and `readlines`, but on the stream that its substitute then replaces, so
    those patches have no effect.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._rest = io.StringIO(text)
        self.buffer = StandInBuffer(text)

    def read(self, *_: Any) -> str:
        return self._text

    def readline(self, *size: Any) -> str:
        return self._rest.readline(*size)

    def readlines(self, *_: Any) -> list[str]:
        return self._text.split("\n")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rest, name)


def without_main_guard(source: str) -> str:
    """Replaces a closing `if __name__ == '__main__':` block with its body."""
    try:
        tree = ast.parse(source)
        last = tree.body[-1]
        if isinstance(last, ast.If) and ast.unparse(last.test).strip() == "__name__ == '__main__'":
            before = ast.unparse(ast.Module(tree.body[:-1], []))
            return before + "\n" + ast.unparse(ast.Module(last.body, []))
    except Exception:
        return source
    return source


def as_function(source: str) -> str:
    """Returns the imports, then everything else as the body of one function."""
    try:
        body = ast.parse(source).body
        imports: list[ast.stmt] = [node for node in body if isinstance(node, (ast.Import, ast.ImportFrom))]
        others = [node for node in body if not isinstance(node, (ast.Import, ast.ImportFrom))]
        wrapped = ast.parse("def wrapped_function(): pass").body[0]
        assert isinstance(wrapped, ast.FunctionDef)
        wrapped.body = others
        return f"{ast.unparse(ast.Module(imports, []))}\n{ast.unparse(wrapped)}"
    except Exception:
        return source


def load(source: str) -> Any:
    """Returns the module, or its Solution if that word occurs anywhere in the text."""
    module = types.ModuleType("tmp_sol", "")
    module.__dict__.update(PRELUDE)
    sys.setrecursionlimit(RECURSION_LIMIT)
    exec(HEAD + source, module.__dict__)  # noqa: S102
    return module.Solution() if "class Solution" in source else module


def guard() -> None:
    """Disables what that checker disables before it runs anything."""
    for name in TAKEN_FROM_OS.split():
        setattr(os, name, None)
    for name in TAKEN_MODULES.split():
        sys.modules[name] = None  # type: ignore[assignment]
    builtins.quit = None  # type: ignore[assignment]
    builtins.help = None  # type: ignore[assignment]
    PRELUDE.update(quit=None, help=None)
    sys.set_int_max_str_digits(50_000)


@contextlib.contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raises in the program when its CPU seconds are used up, and ends the process if it continues."""
    fired: list[bool] = []

    def ring(*_: Any) -> None:
        if fired:
            os._exit(0)
        fired.append(True)
        raise TimeoutException

    signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds, GRACE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class Once:
    """Creates something at the first call, and keeps a failure too."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None
        self._error: Exception | None = None
        self._tried = False

    def __call__(self) -> Any:
        if not self._tried:
            self._tried = True
            guard()
            try:
                with alarm(TEST_CPU_S):
                    self._made = self._make()
            except Exception as error:
                self._error = error
        if self._error is not None:
            raise self._error
        return self._made


_program = Once(lambda: load(as_function(without_main_guard(SOURCE))).wrapped_function)
_solution = Once(lambda: load(SOURCE))


def failure(error: Exception) -> list[Any]:
    return ["time" if "timeoutexception" in repr(error).lower() else "error", repr(error)[:300]]


def parity_stdin(text: str) -> list[Any]:
    """Runs one test on standard input; returns what was printed, or how it failed."""
    try:
        function = _program()
    except Exception as error:
        return failure(error)
    kept = sys.stdin, sys.stdout, builtins.open
    printed = io.StringIO()
    sys.stdin, sys.stdout = StandIn(text), printed
    builtins.open = lambda *_, **__: io.StringIO(text)  # type: ignore[assignment]
    try:
        with alarm(TEST_CPU_S):
            function()
    except SystemExit:
        pass
    except Exception as error:
        return failure(error)
    finally:
        sys.stdin, sys.stdout, builtins.open = kept
    return ["ok", printed.getvalue()]


def parity_calls(name: str, tests: list[list[Any]]) -> list[Any]:
    """Runs all tests of a method on one object; returns each result, up to the first failure."""
    done: list[Any] = []
    try:
        method = getattr(_solution(), name)
    except Exception as error:
        return [failure(error)]
    for arguments in tests:
        try:
            with alarm(TEST_CPU_S):
                value = method(*arguments)
            if isinstance(value, tuple):
                value = list(value)
            if type(value).__name__ == "ndarray":
                raise ValueError("an array has no single truth value")
            done.append(["any"] if equals_everything(value) else ["ok", value])
        except Exception as error:
            done.append(failure(error))
            break
    return done


def equals_everything(value: Any) -> bool:
    """Whether the value claims to equal everything: that checker lets the value itself decide."""
    return type(value).__module__ not in ("builtins", "collections", ARRAYS) and bool(value == object())
