"""Code that runs inside the sandbox, next to untrusted programs: the trusted side believes nothing that it reports."""

import tempfile
from collections.abc import Callable

from runner.sandbox.inside import calls, judge, multiprocessing_parts, private_mappings, stdin_tests
from runner.sandbox.inside.program import Interpreter, read_program
from runner.sandbox.limits import Allow
from runner.sandbox.protocol.messages import Job, Mode, SupervisorSpec


def prepare(spec: SupervisorSpec) -> Callable[[Job, bytes], None]:
    """Does the common work of all children before the fork; returns the function with which a jailed child serves its
    job."""
    if spec.allow & Allow.PROCESSES:
        multiprocessing_parts.install()
    else:
        private_mappings.install()
    tempfile.tempdir = None  # each program determines for itself where it may write
    interpreter = Interpreter()
    servers = {Mode.STDIN_TESTS.value: stdin_tests.serve, Mode.CALLS.value: calls.serve, Mode.JUDGE.value: judge.serve}

    def serve(job: Job, payload: bytes) -> None:
        if job.code_bytes:
            payload = read_program(job.code_bytes)
        servers[job.mode](interpreter, payload, job.tests)

    return serve
