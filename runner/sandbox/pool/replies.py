"""What a child sends back on its control socket, as the runner reads it: it counts only against the program."""

from dataclasses import dataclass

from runner.sandbox.outcome import Execution
from runner.sandbox.protocol.values import BadValueError, Tree


@dataclass
class Reply:
    """The reply on the control socket to one test."""

    reported: bytes | None = None
    status: int = 0
    value: Tree = None
    too_large: bool = False
    last: bool = False
    """The process cannot serve another test."""


def reply_of(answer: Tree) -> Reply:
    """Reads one reply to a call; raises BadValueError (or IndexError) if it is none."""
    if not isinstance(answer, list) or not answer or answer[0] not in ("v", "x", "m"):
        raise BadValueError("no answer")
    if answer[0] == "v":
        return Reply(b"f", 0, answer[1])
    return Reply(b"x" if answer[0] == "x" else b"m", 1)


def with_value(execution: Execution, value: Tree) -> Execution:
    """Returns the same execution with another value; `dataclasses.replace` takes several times as long."""
    return Execution(
        ending=execution.ending,
        stdout=execution.stdout,
        stderr_tail=execution.stderr_tail,
        exit_code=execution.exit_code,
        usage=execution.usage,
        value=value,
        detail=execution.detail,
    )


def frame(request: bytes) -> bytes:
    """Returns a request with its length in front."""
    return len(request).to_bytes(4, "little") + request
