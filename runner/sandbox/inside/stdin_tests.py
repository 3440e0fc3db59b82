"""Runs all tests of one program in turn in one process: the runner fills standard input, starts a test and reads standard
output. This side only reports that a test is over, which decides nothing.

Quick tests are run several in one turn: their inputs lie ready in files of their own, their outputs follow each other in one
file, and one message says where each of them ends.
"""

import os
from types import CodeType

from runner.sandbox.inside.program import (
    FINISHED,
    KEPT_FROM,
    NAME,
    OUT_OF_MEMORY,
    RAISED,
    Interpreter,
    exit_status,
    has_company,
    show_exception,
)
from runner.sandbox.protocol.messages import CONTROL_FD, FIRST_INPUT_FD, Ended

PRELUDE_MARK = b"P"
THE_INPUT = b"\0"
"""The order to run one test on standard input; any other byte is the number of tests with inputs of their own."""


def serve(interpreter: Interpreter, payload: bytes, tests: int) -> None:
    """Runs tests until the runner closes the connection or a thread of the program is left running.

    The payload is one byte (`PRELUDE_MARK`, or anything else for no prelude) and the source.
    """
    program = _Program(interpreter, payload)
    if tests > 1:
        interpreter.begin()
    while order := os.read(CONTROL_FD, 1):
        if order == THE_INPUT:
            last, report = program.run()
        else:
            last, report = program.run_together(order[0])
        os.write(CONTROL_FD, report)
        if last:
            return


class _Program:
    def __init__(self, interpreter: Interpreter, payload: bytes) -> None:
        self.interpreter = interpreter
        self.prelude, self.source = payload[:1] == PRELUDE_MARK, payload[1:].decode("utf-8", "surrogatepass")
        self.code: CodeType | None = None
        self.ending, self.status = FINISHED, 0

    def run(self) -> tuple[bool, bytes]:
        """Runs one test; returns whether this process cannot serve another one, and the report."""
        last = self._run()
        return last, (self.ending.upper() if last else self.ending) + bytes([self.status])

    def run_together(self, tests: int) -> tuple[bool, bytes]:
        """Runs several tests; the report ends early if this process cannot serve another one."""
        kept, reports = self.interpreter.kept, b""
        last = False
        for number in range(FIRST_INPUT_FD, FIRST_INPUT_FD + tests):
            self.interpreter.kept = (number, *kept[1:])
            last = self._run()
            out, err = (os.lseek(fd, 0, os.SEEK_END) for fd in (KEPT_FROM + 1, KEPT_FROM + 2))
            reports += Ended.pack_of(self.ending, self.status, out, err)
            if last:
                break
        self.interpreter.kept = kept
        return last, reports

    def _run(self) -> bool:
        main = self.interpreter.fresh_main(self.prelude)
        self.ending, self.status = FINISHED, 0
        try:
            self.code = self.code or compile(self.source, NAME, "exec", dont_inherit=True)
            exec(self.code, main.__dict__)  # noqa: S102
        except SystemExit as error:
            self.status = exit_status(error)
        except MemoryError:
            show_exception(self.source)
            self.ending, self.status = OUT_OF_MEMORY, 1
        except BaseException:
            show_exception(self.source)
            self.ending, self.status = RAISED, 1
        if not self.interpreter.wind_up(main):
            self.status = self.status or 120
        return has_company()
