"""Runs a benchmark's test code in a separate process. The program under test is at the other end of a socket; its results
are decoded into plain data here, so that the test's own `==` decides and never the program's."""

import ast
import builtins
import contextlib
import json
import os
import socket
import sys
import types
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from runner.sandbox.inside.encoding import decode, encode
from runner.sandbox.inside.frames import HEADER_BYTES, read_exactly, read_frame, write_frame
from runner.sandbox.inside.program import NAME, Interpreter, show_exception
from runner.sandbox.protocol.messages import CONTROL_FD, PEER_FD
from runner.sandbox.protocol.values import OBJECT, Tree

_ENDS_LOOPS = (StopIteration, StopAsyncIteration)
PASSED, FAILED, RAISED, MEMORY, GONE = "passed", "failed", "raised", "memory", "gone"
TAG = "judge_tag"
"""Test code that ends for its own reason raises a class with this attribute. A program's exceptions arrive as built-in
classes: their name and message can say anything, but the tag cannot be forged."""


class CandidateMemoryError(BaseException):
    """The program ran out of memory."""


class CandidateGoneError(BaseException):
    """The program under test has ended or violated the protocol. Not an Exception, so that tests cannot swallow it."""


def serve(interpreter: Interpreter, payload: bytes, tests: int) -> None:
    """Runs test code for one program after another and reports each verdict to the runner.

    No line of a program ever runs in this process, so it may serve many; each comes with a new connection.
    """
    interpreter.begin()
    control = socket.socket(fileno=CONTROL_FD)
    while True:
        header, fds, _, _ = socket.recv_fds(control, HEADER_BYTES, 1)
        if not header:
            return
        os.dup2(fds[0], PEER_FD)
        os.close(fds[0])
        task = json.loads(read_exactly(CONTROL_FD, int.from_bytes(header, "little")))
        main = interpreter.fresh_main(prelude=False)
        verdict = _verdict(task, main)
        os.close(PEER_FD)
        interpreter.wind_up(main)
        write_frame(CONTROL_FD, verdict)


def _verdict(payload: dict[str, Any], main: types.ModuleType) -> list[str]:
    scope = main.__dict__
    candidate = _Candidate()
    test: str = payload["test"]
    try:
        if payload["context"]:
            exec(compile(payload["context"], "context.py", "exec", dont_inherit=True), scope)  # noqa: S102
        code = compile(test, NAME, "exec", dont_inherit=True)
        entry = candidate.function(payload["entry"])
        scope[payload["entry"]] = scope["candidate"] = entry
        scope["__builtins__"] = _Names(candidate)
        exec(code, scope)  # noqa: S102
        scope[payload["entry"]] = entry
        check = scope.get("check")
        if isinstance(check, types.FunctionType) and check.__code__.co_argcount == 1 and not _has_checked(test, candidate):
            check(entry)
        if not candidate.asked:
            candidate.ask(["defines", payload["entry"]])  # the test never called the program, which must at least load
    except CandidateGoneError as error:
        return [GONE, str(error)[:300]]
    except CandidateMemoryError:
        return [MEMORY, ""]
    except AssertionError as error:
        show_exception(test)
        return [FAILED, str(error)[:300]]
    except BaseException as error:
        show_exception(test)
        return [RAISED, f"{type(error).__name__}: {error}"[:300], str(vars(type(error)).get(TAG, ""))]
    return [PASSED, ""]


def _has_checked(test: str, candidate: "_Candidate") -> bool:
    """Whether the test code has called its `check` itself."""
    if not candidate.asked:
        return False
    statements = [one for one in ast.parse(test).body if not isinstance(one, (ast.FunctionDef, ast.ClassDef))]
    calls = (node.func for one in statements for node in ast.walk(one) if isinstance(node, ast.Call))
    return any(isinstance(name, ast.Name) and name.id == "check" for name in calls)


class _Candidate:
    """The program at the other end of the socket."""

    def __init__(self) -> None:
        self.asked = 0

    def function(self, name: str) -> Any:
        def call(*arguments: Any, **keywords: Any) -> Any:
            return self._call("call", name, arguments, keywords)

        call.__name__ = call.__qualname__ = name
        return call

    def ask(self, request: list[Any]) -> list[Any]:
        self.asked += 1
        try:
            write_frame(PEER_FD, request)
            reply = read_frame(PEER_FD)
            if not isinstance(reply, list) or not reply or reply[0] not in ("v", "x", "m"):
                raise CandidateGoneError("the program broke the protocol")
        except (EOFError, OSError, ValueError, RecursionError) as error:
            raise CandidateGoneError(f"the program has gone ({type(error).__name__})") from None
        if reply[0] == "m":
            raise CandidateMemoryError
        if reply[0] == "x":
            raise _exception(reply)
        return reply

    def _call(self, kind: str, subject: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        encoded = [encode(argument, _by_handle) for argument in arguments]
        reply = self.ask([kind, subject, encoded, [[name, encode(v, _by_handle)] for name, v in keywords.items()]])
        value = self.value(reply[1])
        for argument, change in zip(arguments, reply[2], strict=False):
            if change is not None:
                _update(argument, self.value(change))
        return value

    def value(self, tree: Tree) -> Any:
        try:
            return decode(tree, lambda items: Opaque(self, items))
        except (ValueError, TypeError, IndexError, RecursionError, OverflowError) as error:
            raise CandidateGoneError(f"the program sent what is no value ({type(error).__name__})") from None

    def call_object(self, handle: int, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return self._call("call object", handle, arguments, keywords)


class _Names(dict[str, Any]):
    """Built-in names, then names that the test uses and only the program defines (such as a class for its arguments)."""

    def __init__(self, candidate: _Candidate) -> None:
        super().__init__(vars(builtins))
        self._candidate = candidate

    def __missing__(self, name: str) -> Any:
        if name in sys.stdlib_module_names:
            return import_module(name)
        try:
            return self._candidate.value(self._candidate.ask(["global", name])[1])
        except NameError:
            raise KeyError(name) from None


class Opaque:
    """An object that stayed in the program: it equals nothing and is neither true nor false; its attributes can be read."""

    __slots__ = ("_candidate", "_items")

    def __init__(self, candidate: _Candidate, items: list[Any]) -> None:
        self._candidate, self._items = candidate, items

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        raise TypeError(f"{self!r} can't be compared")

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        if self._items[0] == "Match":
            return True  # what `re` returns; it says no more than a returned True would
        raise TypeError(f"{self!r} is no plain value")

    def __repr__(self) -> str:
        return f"<{str(self._items[0])[:60]} object of the program>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._candidate.value(self._candidate.ask(["attribute", self._items[1], name])[1])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._candidate.value(self._candidate.ask(["items", self._items[1]])[1]))

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._candidate.call_object(self._items[1], arguments, keywords)


def _by_handle(value: Any) -> Tree:
    if isinstance(value, Opaque):
        return [OBJECT, *value._items]
    name = getattr(value, "__name__", None)
    if isinstance(name, str) and vars(builtins).get(name) is value:
        return [OBJECT, "builtins", name]
    raise TypeError(f"a {type(value).__name__} can't be passed to the program")


def _exception(reply: list[Any]) -> Exception:
    """Returns the nearest built-in class of the program's exception, but none that would silently end a loop in the test."""
    for name in reply[1] if isinstance(reply[1], list) else []:
        kind = vars(builtins).get(name) if isinstance(name, str) else None
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, _ENDS_LOOPS):
            with contextlib.suppress(TypeError):
                return kind(str(reply[2])[:300])
    return RuntimeError("the program ended itself")


def _update(argument: Any, now: Any) -> None:
    if isinstance(argument, list) and isinstance(now, list):
        argument[:] = now
    elif isinstance(argument, (dict, set)) and isinstance(now, type(argument)):
        argument.clear()
        argument.update(now)
