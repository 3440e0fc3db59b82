"""Calls a program's functions for the runner or a judge, and sends their results back as plain data."""

import builtins
import contextlib
import sys
import types
from typing import Any

from runner.sandbox.inside.encoding import decode, encode
from runner.sandbox.inside.frames import read_frame, write_frame
from runner.sandbox.inside.program import NAME, Interpreter, flush, show_exception
from runner.sandbox.inside.stdin_tests import PRELUDE_MARK
from runner.sandbox.protocol.messages import CONTROL_FD
from runner.sandbox.protocol.values import OBJECT, Tree

ITEMS = 1_000_000
TOGETHER = "solve all"
"""A request for several independent calls, with a list of the replies to each as its reply."""


def serve(interpreter: Interpreter, payload: bytes, tests: int) -> None:
    """Loads the program, then answers requests until the other side closes the connection."""
    source = payload[1:].decode("utf-8", "surrogatepass")
    main = interpreter.fresh_main(payload[:1] == PRELUDE_MARK)
    server = _Server(source, main)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionError):
        while True:
            kind, subject, *rest = request = read_frame(CONTROL_FD)
            if kind == TOGETHER:
                write_frame(CONTROL_FD, [server.answer(["solve", subject, arguments]) for arguments in rest[0]])
            else:
                write_frame(CONTROL_FD, server.answer(request))


class _Server:
    def __init__(self, source: str, main: types.ModuleType) -> None:
        self.source, self.main = source, main
        self.loaded = False
        self.objects: list[Any] = []

    def answer(self, request: list[Any]) -> list[Any]:
        kind, subject, *rest = request
        try:
            if not self.loaded:
                exec(compile(self.source, NAME, "exec", dont_inherit=True), self.main.__dict__)  # noqa: S102
                self.loaded = True
            return self._do(kind, subject, rest)
        except MemoryError:
            show_exception(self.source)
            return ["m"]
        except BaseException as error:
            if kind != "global":
                show_exception(self.source)
            return ["x", [kind.__name__ for kind in type(error).__mro__], _text(error)]
        finally:
            flush(sys.stdout)
            flush(sys.stderr)

    def _do(self, kind: str, subject: Any, rest: list[Any]) -> list[Any]:
        if kind == "solve":
            return ["v", encode(self._entry(subject)(*rest[0]))]
        if kind == "call":
            return self._call(self._entry(subject), rest[0], rest[1])
        if kind == "call object":
            return self._call(self.objects[subject], rest[0], rest[1])
        if kind == "defines":
            return ["v", callable(self._entry(subject))]
        if kind == "global":
            if subject not in self.main.__dict__:
                raise NameError(f"name {subject!r} is not defined")
            return ["v", encode(self.main.__dict__[subject], self._keep)]
        if kind == "attribute":
            return ["v", encode(getattr(self.objects[subject], rest[0]), self._keep)]
        if kind == "items":
            return ["v", encode([item for _, item in zip(range(ITEMS), self.objects[subject], strict=False)], self._keep)]
        raise ValueError(f"unknown request {kind!r}")

    def _call(self, function: Any, trees: list[Any], named: list[Any]) -> list[Any]:
        arguments = [decode(tree, self._recall) for tree in trees]
        keywords = {name: decode(tree, self._recall) for name, tree in named}
        value = encode(function(*arguments, **keywords), self._keep)
        # Changes in place must be visible to the test, as they would be in one process.
        after = [encode(argument, self._keep) if isinstance(argument, (list, dict, set)) else None for argument in arguments]
        return ["v", value, [now if now != before else None for now, before in zip(after, trees, strict=True)]]

    def _entry(self, name: str) -> Any:
        if name not in self.main.__dict__ and "Solution" in self.main.__dict__:
            return getattr(self.main.__dict__["Solution"](), name)
        if "Solution" in self.main.__dict__ and hasattr(self.main.__dict__["Solution"], name):
            return getattr(self.main.__dict__["Solution"](), name)
        if name not in self.main.__dict__:
            raise NameError(f"the program defines no {name!r}")
        return self.main.__dict__[name]

    def _keep(self, value: Any) -> Tree:
        self.objects.append(value)
        return [OBJECT, type(value).__name__, len(self.objects) - 1]

    def _recall(self, items: list[Any]) -> Any:
        return vars(builtins)[items[1]] if items[0] == "builtins" else self.objects[items[1]]


def _text(error: BaseException) -> str:
    try:
        return str(error)[:300]
    except BaseException:
        return ""
