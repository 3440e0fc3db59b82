"""Runs the common code of all children a few times before the fork.

An interpreter specializes its code at run time by writing into it, and each such write in a child copies a page. Code that
was specialized before the fork is shared by all children.
"""

import json
import os
import socket
from collections.abc import Callable

from runner.sandbox.inside import calls, stdin_tests
from runner.sandbox.inside.program import KEPT_FROM, STREAMS, Interpreter
from runner.sandbox.protocol.messages import CONTROL_FD, FIRST_INPUT_FD

TIMES = 12
_PROGRAM = b"import sys\ndef main():\n    n = int(input())\n    print(n * 2)\nmain()\n"
_FUNCTION = b"class Solution:\n    def f(self, a):\n        return [sum(a)]\n"
_TURNS = stdin_tests.THE_INPUT, stdin_tests.THE_INPUT + b"\1"
_CALL = json.dumps(["call", "f", [["l", 1, 2]], []]).encode()
_SOLVE = json.dumps(["solve", "f", [[1, 2]]]).encode()


def warm_up() -> None:
    """Uses descriptors 0 to 4 and restores them afterwards, together with the interpreter's state."""
    saved = [os.dup(fd) for fd in range(CONTROL_FD + 1)]
    questions = b"".join(len(one).to_bytes(4, "little") + one for one in (_CALL, _SOLVE))
    try:
        for time in range(TIMES):
            mark = stdin_tests.PRELUDE_MARK if time % 2 else b"-"
            _act(stdin_tests.serve, mark + _PROGRAM, 1 + time % 2, _TURNS[time % 2])
            _act(calls.serve, mark + _FUNCTION, 1, questions)
    finally:
        for number, fd in enumerate(saved):
            os.dup2(fd, number)
            os.close(fd)
        os.closerange(KEPT_FROM, KEPT_FROM + len(STREAMS))
        os.close(FIRST_INPUT_FD)


def _act(serve: Callable[[Interpreter, bytes, int], None], payload: bytes, tests: int, orders: bytes) -> None:
    files = [os.memfd_create("rehearsal") for _ in range(CONTROL_FD)]  # one more than needed: number 3 is unused
    os.pwrite(files[0], b"21\n", 0)
    ours, theirs = socket.socketpair()
    files.append(theirs.detach())
    for number, fd in enumerate(files):
        os.dup2(fd, number)
        os.close(fd)
    os.dup2(0, FIRST_INPUT_FD)
    ours.sendall(orders)
    ours.shutdown(socket.SHUT_WR)
    interpreter = Interpreter()
    serve(interpreter, payload, tests)
    interpreter.reset()
    ours.close()
