"""Letters out of model texts: our rules by table, the published ones on texts that tell both apart."""

import time
from pathlib import Path
from typing import Any

import pytest

from orchestrator.grading.formats import Sample, read_samples
from runner.benchmarks.mmlu_pro import MmluProTask
from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits
from runner.errors import ProblemError
from runner.rules.letter_answer import LetterRule, extract_letter
from tests.benchmark_records import mmlu_pro
from tests.benchmark_records.files import records
from tests.benchmark_records.mmlu_pro_published import published_letter

R = LetterRule
CASES = {
    "as asked": ("So the answer is (C).", "C", R.STATED, True),
    "without brackets": ("The answer is C", "C", R.STATED, True),
    "with a colon": ("The correct answer is: D.", "D", R.STATED, True),
    "bold": ("The answer is **(E)**.", "E", R.STATED, True),
    "the last one counts": ("One might think the answer is A, but the answer is (C).", "C", R.STATED, True),
    "thinking does not count": ("<think>the answer is (A)</think>The answer is (B).", "B", R.STATED, True),
    "thinking that never ends": ("Answer: B\n<think>the answer is (A)", "B", R.LABELLED, True),
    "boxed": (r"Therefore $\boxed{F}$", "F", R.BOXED, True),
    "boxed as text": (r"$\boxed{\text{(G)}}$", "G", R.BOXED, True),
    "labelled": ("Answer: H", "H", R.LABELLED, True),
    "a word is no letter": ("The answer is Anything but B", "B", R.LAST_LETTER, False),
    "last letter": ("Options A and D fit, D more so", "D", R.LAST_LETTER, False),
    "beyond the options": ("The answer is (K)", None, R.NONE, True),
    "the pronoun is a letter too": ("I cannot say.", "I", R.LAST_LETTER, False),
    "empty": ("", None, R.NONE, True),
}


@pytest.mark.parametrize(("text", "letter", "rule", "complete"), CASES.values(), ids=CASES.keys())
def test_letters(text: str, letter: str | None, rule: LetterRule, complete: bool) -> None:
    found = extract_letter(text)
    assert (found.code, found.rule, found.complete) == (letter, rule, complete)


@pytest.mark.parametrize("text", ["answer is " * 50_000, "A" * 500_000, "Answer:" + " " * 500_000, "B " * 200_000])
def test_degenerate_texts_take_linear_time(text: str) -> None:
    started = time.process_time()
    extract_letter(text)
    published_letter(text)
    assert time.process_time() - started < 20


RECORD: dict[str, Any] = {"question": "2+2?", "options": ["3", "4"], "answer": "B", "category": "math"}


@pytest.mark.anyio
async def test_asking_and_judging() -> None:
    task = MmluProTask.read(RECORD)
    assert "(A) 3\n(B) 4" in task.prompt().user
    assert task.prompt().version == "mmlu_pro-1"
    verdicts = [await task.judge(letter, None, ExecutionLimits()) for letter in "BA"]  # type: ignore[arg-type]
    assert [verdict.outcome for verdict in verdicts] == [Outcome.PASSED, Outcome.WRONG_ANSWER]


def test_examples_stand_in_front_and_the_version_says_so() -> None:
    example = {"question": "1+1?", "options": ["2", "5"], "answer": "A", "worked_answer": "Let's count. The answer is (A)."}
    prompt = MmluProTask.read({**RECORD, "examples": [example] * 5}).prompt()
    assert prompt.version == "mmlu_pro-1-5shot"
    assert prompt.user.count("(A) 2\n(B) 5\n\nAnswer: Let's count. The answer is (A).") == 5
    assert prompt.user.endswith(MmluProTask.read(RECORD).prompt().user)
    with pytest.raises(ProblemError, match="example"):
        MmluProTask.read({**RECORD, "examples": [{}]})


@pytest.mark.parametrize(
    "change", [{"options": []}, {"answer": "C"}, {"question": ""}, {"options": list("abcdefghijk")}], ids=str
)
def test_records_that_cannot_be_understood(change: dict[str, Any]) -> None:
    with pytest.raises(ProblemError):
        MmluProTask.read({**RECORD, **change})


@pytest.mark.parametrize(("text", "published", "ours"), mmlu_pro.TEXTS, ids=lambda value: repr(value)[:30])
def test_letters_by_the_published_rules_and_by_ours(text: str | None, published: str | None, ours: str | None) -> None:
    assert published_letter(text or "") == published
    assert extract_letter((text or "").replace("**", "")).code == ours


def test_the_two_rules_differ_where_it_is_documented() -> None:
    """docs/grading.md names both causes."""
    differ = {number for number, (_, published, ours) in enumerate(mmlu_pro.TEXTS) if published != ours}
    assert differ == {*mmlu_pro.LAST_OF_SEVERAL, mmlu_pro.WORD}


def test_stored_outputs_keep_the_letter_of_their_file(benchmark_files: Path) -> None:
    ids = list(records("mmlu_pro", benchmark_files / "model_outputs.zip"))
    found = {s.problem_id: s.text for s in read_samples(benchmark_files / "model_outputs.zip", ids) if isinstance(s, Sample)}
    letters = {str(row["question_id"]): row["pred"] for row in mmlu_pro.OUTPUTS}
    assert {name: published_letter(text or "") for name, text in found.items()} == {name: letters[name] for name in found}
    assert len(found) == sum(text is not None for text, _, _ in mmlu_pro.TEXTS)
