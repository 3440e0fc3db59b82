"""Code that runs inside the sandbox, next to untrusted programs: nothing it says is believed by the trusted side."""

from runner.sandbox.inside import calls, judge, stdin_tests
from runner.sandbox.inside.prelude import namespace
from runner.sandbox.wire import Mode


def warm_up() -> None:
    """Do once in the zygote what every child would do."""
    namespace()


def serve(mode: Mode) -> None:
    """What a jailed child does; the program is on its descriptor."""
    {Mode.STDIN_TESTS: stdin_tests.serve, Mode.CALLS: calls.serve, Mode.JUDGE: judge.serve}[mode]()
