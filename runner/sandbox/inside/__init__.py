"""Code that runs inside the sandbox, next to untrusted programs: nothing it says is believed by the trusted side."""

import tempfile
from collections.abc import Callable

from runner.sandbox.inside import calls, judge, multiprocessing_parts, stdin_tests
from runner.sandbox.inside.program import Interpreter
from runner.sandbox.limits import Allow
from runner.sandbox.wire import Job, Mode, Post


def prepare(post: Post) -> Callable[[Job], None]:
    """Do before the fork what every child would do; what a jailed child then calls, with its program on a descriptor."""
    if post.allow & Allow.PROCESSES:
        multiprocessing_parts.install()
    tempfile.tempdir = None  # each program finds out for itself where it may write
    interpreter = Interpreter()
    servers = {Mode.STDIN_TESTS.value: stdin_tests.serve, Mode.CALLS.value: calls.serve, Mode.JUDGE.value: judge.serve}

    def serve(job: Job) -> None:
        servers[job.mode](interpreter, job.code_bytes)

    return serve
