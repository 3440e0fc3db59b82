"""Code that runs inside the sandbox, next to untrusted programs: nothing it says is believed by the trusted side."""

from collections.abc import Callable

from runner.sandbox.inside import calls, judge, stdin_tests
from runner.sandbox.inside.program import Interpreter
from runner.sandbox.wire import Mode


def prepare() -> Callable[[Mode], None]:
    """Do before the fork what every child would do; what a jailed child then calls, with its program on a descriptor."""
    interpreter = Interpreter()
    servers = {Mode.STDIN_TESTS: stdin_tests.serve, Mode.CALLS: calls.serve, Mode.JUDGE: judge.serve}

    def serve(mode: Mode) -> None:
        servers[mode](interpreter)

    return serve
