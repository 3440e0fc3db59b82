"""Numbers out of model texts, and worked answers read as their benchmark does."""

import time
from decimal import Decimal
from pathlib import Path

import pytest

from runner.benchmarks.gsm8k import Gsm8kTask
from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits
from runner.errors import ProblemError
from runner.rules.number_answer import NumberRule, as_number, extract_number
from tests.benchmark_records import gsm8k
from tests.benchmark_records.files import records

R = NumberRule
CASES = {
    "as asked": ("2+2=4\n#### 4", "4", R.MARKED, True),
    "thousands": ("#### 1,450,000", "1450000", R.MARKED, True),
    "money": ("#### $18.00", "18.00", R.MARKED, True),
    "negative": ("#### -3", "-3", R.MARKED, True),
    "typographic minus": ("#### −3", "-3", R.MARKED, True),
    "bold": ("#### **42**", "42", R.MARKED, True),
    "the last mark counts": ("#### 3\nWait.\n#### 5", "5", R.MARKED, True),
    "mark before box": (r"\boxed{3} #### 5", "5", R.MARKED, True),
    "boxed": (r"so $\boxed{1{,}0}$ or rather \boxed{12}", "12", R.BOXED, True),
    "boxed money": (r"\boxed{\$18}", "18", R.BOXED, True),
    "stated": ("The answer is $7.50, not 9 or 8 apples", "7.50", R.STATED, True),
    "labelled": ("Answer: 12 of the 30", "12", R.STATED, True),
    "labelled in bold": ("**Answer:** 12 of the 30", "12", R.STATED, True),
    "last number": ("She has 3 left, so 12.", "12", R.LAST_NUMBER, False),
    "sentence end": ("It makes 5.", "5", R.LAST_NUMBER, False),
    "within a word": ("variable x1 has no value", None, R.NONE, True),
    "thinking does not count": ("<think>#### 9</think>#### 8", "8", R.MARKED, True),
    "nothing": ("I do not know", None, R.NONE, True),
}


@pytest.mark.parametrize(("text", "number", "rule", "complete"), CASES.values(), ids=CASES.keys())
def test_numbers(text: str, number: str | None, rule: NumberRule, complete: bool) -> None:
    found = extract_number(text)
    assert (found.code, found.rule, found.complete) == (number, rule, complete)


@pytest.mark.parametrize("text", ["9" * 300_000, "#### " * 100_000, "1," * 200_000, "answer" * 100_000], ids=len)
def test_degenerate_texts_take_linear_time(text: str) -> None:
    started = time.process_time()
    extract_number(text)
    assert time.process_time() - started < 20


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answered", "right"), [("18", True), ("18.00", True), ("18.01", False), ("-18", False), ("x", False)]
)
async def test_numbers_are_compared_as_numbers(answered: str, right: bool) -> None:
    task = Gsm8kTask.read({"question": "?", "answer": "18"})
    verdict = await task.judge(answered, None, ExecutionLimits())  # type: ignore[arg-type]
    assert verdict.outcome is (Outcome.PASSED if right else Outcome.WRONG_ANSWER)


@pytest.mark.parametrize("record", [{"question": "?"}, {"question": "?", "answer": "many"}, {"answer": "1"}], ids=str)
def test_records_that_cannot_be_understood(record: dict[str, str]) -> None:
    with pytest.raises(ProblemError):
        Gsm8kTask.read(record)


def test_worked_answers_are_extracted_as_the_benchmark_reads_them(benchmark_files: Path) -> None:
    tasks = [Gsm8kTask.read(record) for record in records("gsm8k", benchmark_files / "gsm8k.jsonl").values()]
    for task, row, number in zip(tasks, gsm8k.PROBLEMS, gsm8k.NUMBERS, strict=True):
        found = extract_number(row["answer"])
        assert found.rule is R.MARKED
        assert as_number(found.code or "") == task.answer == Decimal(number)
