"""Runs all tests of one program in turn in one process: the runner fills standard input, starts a test and reads standard
output. This side only reports that a test is over, which decides nothing."""

import os
from types import CodeType

from runner.sandbox.inside.program import (
    FINISHED,
    NAME,
    OUT_OF_MEMORY,
    RAISED,
    Interpreter,
    exit_status,
    has_company,
    show_exception,
)
from runner.sandbox.protocol.messages import CONTROL_FD

PRELUDE_MARK = b"P"


def serve(interpreter: Interpreter, payload: bytes, tests: int) -> None:
    """Runs tests until the runner closes the connection or a thread of the program is left running.

    The payload is one byte (`PRELUDE_MARK`, or anything else for no prelude) and the source.
    """
    prelude, source = payload[:1] == PRELUDE_MARK, payload[1:].decode("utf-8", "surrogatepass")
    if tests > 1:
        interpreter.begin()
    code: CodeType | None = None
    while os.read(CONTROL_FD, 1):
        main = interpreter.fresh_main(prelude)
        ending, status = FINISHED, 0
        try:
            code = code or compile(source, NAME, "exec", dont_inherit=True)
            exec(code, main.__dict__)  # noqa: S102
        except SystemExit as error:
            status = exit_status(error)
        except MemoryError:
            show_exception(source)
            ending, status = OUT_OF_MEMORY, 1
        except BaseException:
            show_exception(source)
            ending, status = RAISED, 1
        if not interpreter.wind_up(main):
            status = status or 120
        last = has_company()
        os.write(CONTROL_FD, (ending.upper() if last else ending) + bytes([status]))
        if last:
            return
