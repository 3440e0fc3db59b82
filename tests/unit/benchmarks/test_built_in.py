"""Built-in benchmarks described as files: the same prompts and verdicts as their adapters, from the published columns."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.benchmarks.building.problems import ProblemMaker, Unusable
from orchestrator.benchmarks.published.catalogue import BUILT_IN, built_in_text
from orchestrator.benchmarks.service import parsed
from orchestrator.datasets.formats.published.gsm8k import final_number
from orchestrator.datasets.formats.published.mmlu_pro import question
from orchestrator.datasets.formats.records import Unusable as LeftOutByAdapter
from runner.benchmarks.defined import DefinedTask
from runner.benchmarks.gsm8k import Gsm8kTask
from runner.benchmarks.mmlu_pro import MmluProTask
from runner.contract.run_spec import ExecutionLimits
from tests.benchmark_records import gsm8k, mmlu_pro
from tests.benchmark_records.on_hub import worked_answers
from tests.unit.runner.benchmarks.test_gsm8k import CASES as NUMBER_TEXTS

Row = dict[str, Any]


def by_file(name: str, row: Row, examples: list[Row] | None = None) -> DefinedTask:
    definition = parsed(built_in_text(name) or "")
    record = ProblemMaker(definition, examples or []).problem(1, row)["record"]
    return DefinedTask.read(record, rules=definition.rules)


async def verdict(task: Any, text: str) -> tuple[str | None, str | None]:
    found = task.extract(text)
    if found.code is None:
        return None, None
    judged = await task.judge(found.code, None, ExecutionLimits())
    return found.code, judged.outcome.value


def numbers_task(row: Row) -> Gsm8kTask:
    return Gsm8kTask.read({"question": row["question"], "answer": final_number(row["answer"])})


@pytest.mark.anyio
@pytest.mark.parametrize("row", gsm8k.PROBLEMS, ids=gsm8k.NUMBERS)
async def test_gsm8k_is_the_same_by_its_file(row: Row) -> None:
    file, adapter = by_file("gsm8k", row), numbers_task(row)
    assert (file.system, file.user) == (adapter.prompt().system, adapter.prompt().user)
    answers = [text for text, *_ in NUMBER_TEXTS.values()] + [f"so\n#### {number}" for number in gsm8k.NUMBERS]
    for text in [*answers, row["answer"], "#### 19.00", "#### 1500000.0"]:
        assert await verdict(file, text) == await verdict(adapter, text), text


def test_records_without_a_marked_number_are_left_out_by_both() -> None:
    for answer in ("19", "#### many", "####"):
        with pytest.raises(Unusable):
            by_file("gsm8k", {"question": "?", "answer": answer})
        with pytest.raises(LeftOutByAdapter):
            final_number(answer)


@pytest.mark.anyio
@pytest.mark.parametrize("shots", [0, 5])
async def test_mmlu_pro_is_the_same_by_its_file(shots: int) -> None:
    worked = worked_answers()
    options = ["red <1>", "green & 'x'", "N/A", *(f"option {number}" for number in range(5)), "j", "last"]
    for category in {row["category"] for row in worked}:
        row = {"question_id": 7, "question": " Which? ", "options": options, "answer": "C", "answer_index": 2}
        row |= {"category": category}
        few = [example for example in worked if shots]
        file = by_file("mmlu_pro", row, few)
        _, record = question(row)
        shown = [
            {**question(example)[1], "worked_answer": question(example)[1]["worked_answer"]}
            for example in worked
            if shots and example["category"] == category
        ]
        adapter = MmluProTask.read({**record, "examples": shown})
        assert (file.system, file.user) == (adapter.prompt().system, adapter.prompt().user)
        for text in [text for text, *_ in mmlu_pro.TEXTS if text is not None]:
            assert await verdict(file, text) == await verdict(adapter, text), text


def test_options_that_only_fill_up_are_dropped_by_both() -> None:
    row = {"question_id": 7, "question": "?", "options": ["a", "N/A", "b", "N/A", "N/A"], "answer": "C", "answer_index": 2}
    file = by_file("mmlu_pro", row | {"category": "math"})
    _, record = question(row | {"category": "math"})
    assert file.user == MmluProTask.read(record).prompt().user
    assert file.choices == 3
    for wrong in ({"answer": "B"}, {"answer_index": None}):
        with pytest.raises(Unusable):
            by_file("mmlu_pro", row | {"category": "math"} | wrong)
        with pytest.raises(LeftOutByAdapter):
            question(row | {"category": "math"} | wrong)


def test_the_files_can_be_read_and_have_names_of_their_own() -> None:
    assert {parsed(built_in_text(name) or "").name for name in BUILT_IN} == {"gsm8k-as-file", "mmlu-pro-as-file"}
    assert built_in_text("livecodebench") is None
