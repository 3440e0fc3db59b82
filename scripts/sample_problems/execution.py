"""Run a trusted solution in this process: our own references and their slow twins, never a model's answer."""

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from typing import Any

from .definition import Case, Problem


def encode(case: Case) -> str:
    """The `input` of a test: the text itself, or one JSON value per line and argument."""
    return case if isinstance(case, str) else "\n".join(json.dumps(argument) for argument in case)


def answer(problem: Problem, source: str, case: Case) -> str:
    """What `source` answers to `case`, in the form of a test's `output`."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    program = compile(source, "<solution>", "exec")
    if problem.func_name is None:
        with _stdio(encode(case)) as printed:
            exec(program, scope)
        return printed.getvalue()
    exec(program, scope)
    arguments = [json.loads(line) for line in encode(case).split("\n")]
    return json.dumps(getattr(scope["Solution"](), problem.func_name)(*arguments))


@contextlib.contextmanager
def _stdio(given: str) -> Iterator[io.StringIO]:
    real_in, printed = sys.stdin, io.StringIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(given.encode()), encoding="utf-8")
    try:
        with contextlib.redirect_stdout(printed):
            yield printed
    finally:
        sys.stdin = real_in
