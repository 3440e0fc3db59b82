"""Runs what every child will run, a few times before the fork.

An interpreter adapts its code to what it sees by writing into it, and each such write in a child is a copy of a page. What
has been adapted beforehand is shared by all children.
"""

import json
import os
import socket
from collections.abc import Callable

from runner.sandbox.inside import calls, stdin_tests
from runner.sandbox.inside.program import KEPT_FROM, STREAMS, Interpreter
from runner.sandbox.protocol.messages import CONTROL_FD

TIMES = 12
_PROGRAM = b"import sys\ndef main():\n    n = int(input())\n    print(n * 2)\nmain()\n"
_FUNCTION = b"class Solution:\n    def f(self, a):\n        return [sum(a)]\n"
_TURNS = b"gg"
_CALL = json.dumps(["call", "f", [["l", 1, 2]], []]).encode()
_SOLVE = json.dumps(["solve", "f", [[1, 2]]]).encode()


def warm_up() -> None:
    """Descriptors 0 to 4 are used meanwhile and are as before afterwards, as is the state of the interpreter."""
    kept = [os.dup(fd) for fd in range(CONTROL_FD + 1)]
    questions = b"".join(len(one).to_bytes(4, "little") + one for one in (_CALL, _SOLVE))
    try:
        for time in range(TIMES):
            mark = stdin_tests.PRELUDE_MARK if time % 2 else b"-"
            _act(stdin_tests.serve, mark + _PROGRAM, 1 + time % 2, _TURNS[: 1 + time % 2])
            _act(calls.serve, mark + _FUNCTION, 1, questions)
    finally:
        for number, fd in enumerate(kept):
            os.dup2(fd, number)
            os.close(fd)
        os.closerange(KEPT_FROM, KEPT_FROM + len(STREAMS))


def _act(serve: Callable[[Interpreter, bytes, int], None], payload: bytes, tests: int, orders: bytes) -> None:
    files = [os.memfd_create("rehearsal") for _ in range(CONTROL_FD)]  # one to spare: number 3 is nobody's
    os.pwrite(files[0], b"21\n", 0)
    ours, theirs = socket.socketpair()
    files.append(theirs.detach())
    for number, fd in enumerate(files):
        os.dup2(fd, number)
        os.close(fd)
    ours.sendall(orders)
    ours.shutdown(socket.SHUT_WR)
    interpreter = Interpreter()
    serve(interpreter, payload, tests)
    interpreter.reset()
    ours.close()
