"""Public problems and graded answers through the split of candidate and judge, without the adapters of the benchmarks."""

import json
import re

import pytest

from tests.benchmark_records.files import read_json_lines
from tests.published.conftest import Find
from tests.sandbox.test_benchmark_data import PATIENT, check_all

pytestmark = pytest.mark.data


def test_sanitized_mbpp_reference_code_passes(published: Find) -> None:
    problems = json.loads(published("mbpp/sanitized-mbpp.json").read_text())
    tasks = []
    for one in problems:
        defined = re.findall(r"^def (\w+)", one["code"], re.MULTILINE)
        used = (name for name in defined if re.search(rf"\b{name}\(", one["test_list"][0]))
        entry = next(used, "candidate")
        tasks.append((one["code"], "\n".join([*one["test_imports"], *one["test_list"]]), entry, ""))
    done = check_all(tasks, PATIENT)
    failed = [(p["task_id"], one) for p, one in zip(problems, done, strict=True) if not one.passed]
    assert (len(done), failed) == (427, [])


@pytest.mark.parametrize("name", ["humaneval", "mbpp"])
def test_graded_answers_of_a_model_are_graded_alike(published: Find, name: str) -> None:
    answers = read_json_lines(published(f"graded/ldb_codellama_{name}_seed.jsonl"))
    tasks = []
    for one in answers:
        context = one["prompt"] + "\n    pass\n" if name == "humaneval" else ""
        tasks.append((one["solution"], one["test"], one["entry_point"], context))
    done = check_all(tasks)
    different = [one["task_id"] for one, got in zip(answers, done, strict=True) if got.passed != one["is_solved"]]
    assert different == []
