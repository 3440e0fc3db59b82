"""How others execute the same work, written from the description of their checkers in their repositories.

Both put the program under test into a forked process of the grader, next to the expected answers, behind a
multiprocessing manager; neither isolates anything. They are here to be measured against, not to be used.
"""

import ast
import contextlib
import io
import multiprocessing
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any
from unittest.mock import mock_open, patch

from runner.sandbox.inside.prelude import PRELUDE

_FORK = multiprocessing.get_context("fork")


def _in_process(work: Callable[[Any], None], timeout: float) -> Any:
    """A manager, a list, a process, a join: the frame that both checkers use."""
    with _FORK.Manager() as manager:
        result = manager.list()
        process = _FORK.Process(target=work, args=(result,))
        process.start()
        process.join(timeout=timeout)
        if process.is_alive():
            process.kill()
        return list(result)


def human_eval_style(check_program: str, timeout: float = 3.0) -> bool:
    """Prompt, completion, test and call as one text, executed in a child with silenced streams."""

    def work(result: Any) -> None:
        import os
        import shutil
        import subprocess as sub
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            kept = shutil.rmtree, os.rmdir, os.chdir
            os.chdir(folder)
            for module, name in ((os, "system"), (os, "kill"), (shutil, "move"), (sub, "Popen")):
                setattr(module, name, None)
            try:
                with (
                    contextlib.redirect_stdout(io.StringIO()),
                    contextlib.redirect_stderr(io.StringIO()),
                    patch("sys.stdin", io.StringIO()),
                ):
                    signal.setitimer(signal.ITIMER_REAL, timeout)
                    exec(check_program, {})
                    signal.setitimer(signal.ITIMER_REAL, 0)
                result.append("passed")
            except BaseException as error:
                result.append(f"failed: {error}")
            shutil.rmtree, os.rmdir, os.chdir = kept
            os.chdir("/")

    return _in_process(work, timeout + 1) == ["passed"]


class _Stdin:
    """Their stand-in for standard input: lines in turn, everything again with each `read`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = io.StringIO(text)
        self.buffer = io.BytesIO(text.encode())
        self.readline = self._lines.readline

    def read(self, *_: Any) -> str:
        return self._text

    def readlines(self, *_: Any) -> list[str]:
        return self._text.split("\n")


def _wrap(program: str) -> str:
    """Hoist the imports, drop the main guard, put the rest into one function: by syntax tree, as they do."""
    tree = ast.parse(program)
    last = tree.body[-1]
    if isinstance(last, ast.If) and ast.unparse(last.test) == "__name__ == '__main__'":
        before = ast.unparse(ast.Module(tree.body[:-1], []))
        tree = ast.parse(before + "\n" + ast.unparse(ast.Module(last.body, [])))
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    rest = [node for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    function = ast.parse("def wrapped(): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = rest or function.body
    tree.body = [*imports, function]
    return PRELUDE + "\n" + ast.unparse(ast.fix_missing_locations(tree))


def _feed(wrapped: Callable[[], None], text: str) -> str:
    """One call with standard input replaced at every place where a program may look for it, in their order."""
    lines = iter(text.split("\n"))
    out = io.StringIO()
    with (
        patch("sys.stdin.read", lambda *_: text),
        patch("sys.stdin.readlines", lambda *_: text.split("\n")),
        patch("sys.stdin.readline", lambda *_: next(lines)),
        patch("sys.stdin", _Stdin(text)),
        patch("builtins.open", mock_open(read_data=text)),
        contextlib.redirect_stdout(out),
        contextlib.suppress(SystemExit),
    ):
        wrapped()
    return out.getvalue()


def _same_lines(got: str, wanted: str) -> bool:
    left, right = ([line.strip() for line in text.strip().split("\n")] for text in (got, wanted))
    if len(left) != len(right):
        return False
    for one, other in zip(left, right, strict=True):
        if one != other:
            try:
                if [Decimal(part) for part in one.split()] != [Decimal(part) for part in other.split()]:
                    return False
            except InvalidOperation:
                return False
    return True


def livecodebench_stdin_style(program: str, inputs: Sequence[str], expected: Sequence[str], timeout: float = 6.0) -> bool:
    """Program wrapped into one function behind the import header, streams replaced, test by test, compared in there."""

    def work(result: Any) -> None:
        scope: dict[str, Any] = {}
        exec(compile(_wrap(program), "solution.py", "exec"), scope)
        for given, wanted in zip(inputs, expected, strict=True):
            signal.alarm(int(timeout))
            try:
                got = _feed(scope["wrapped"], given)
            except Exception:
                got = ""
            signal.alarm(0)
            if not _same_lines(got, wanted):
                result.append(False)
                return
        result.append(True)

    return _in_process(work, (timeout + 1) * len(inputs) + 5) == [True]


def livecodebench_call_style(program: str, entry: str, calls: Sequence[Any], expected: Sequence[Any]) -> bool:
    """The functional variant."""

    def work(result: Any) -> None:
        scope: dict[str, Any] = {}
        exec(compile(PRELUDE + program, "solution.py", "exec"), scope)
        function = getattr(scope["Solution"](), entry)
        for arguments, wanted in zip(calls, expected, strict=True):
            signal.alarm(6)
            got = function(*arguments)
            signal.alarm(0)
            if got != wanted:
                result.append(False)
                return
        result.append(True)

    return _in_process(work, 60) == [True]


def bare_python(program: str, given: bytes, *flags: str) -> bytes:
    """A new interpreter."""
    return subprocess.run([sys.executable, *flags, "-c", program], input=given, capture_output=True, check=True).stdout


def bubblewrap(program: str, given: bytes) -> bytes:
    """A new interpreter in new namespaces."""
    command = ["bwrap", "--ro-bind", "/", "/", "--unshare-all", "--die-with-parent", "/usr/bin/python3", "-c", program]
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout


def docker_exec(container: str, program: str, given: bytes) -> bytes:
    """A new interpreter in a container that runs already."""
    command = ["docker", "exec", "-i", container, "python3", "-c", program]
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout
