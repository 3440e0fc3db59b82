"""Letters out of model texts: our rules by table, the published ones against 12,020 real answers."""

import json
import re
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from runner.benchmarks.mmlu_pro import LetterRule, MmluProTask, extract_letter
from runner.benchmarks.mmlu_pro_published import published_letter
from runner.contract import ExecutionLimits, Outcome
from runner.errors import ProblemError

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


@pytest.fixture(scope="module")
def outputs(shared: Path) -> list[dict[str, Any]]:
    with zipfile.ZipFile(shared / "mmlu_pro" / "model_outputs_gemini-1.5-pro-002_5shots.zip") as archive:
        rows: list[dict[str, Any]] = json.loads(archive.read(archive.namelist()[0]))
    return rows


def test_published_letters_are_reproduced(outputs: list[dict[str, Any]]) -> None:
    assert [row["question_id"] for row in outputs if published_letter(row["model_outputs"] or "") != row["pred"]] == []
    assert len(outputs) == 12_020


def test_every_difference_to_the_published_letters_has_a_cause(outputs: list[dict[str, Any]]) -> None:
    causes: dict[str, int] = {"the last of several stated answers": 0, "a word that begins with the letter": 0}
    for row in outputs:
        text = (row["model_outputs"] or "").replace("**", "")
        if extract_letter(text).code == row["pred"]:
            continue
        stated = re.findall(r"answer is:? ?\(?([A-J]\w*)", text)
        if len(stated) > 1:
            causes["the last of several stated answers"] += 1
        else:
            assert len(stated) == 1, row["question_id"]
            assert len(stated[0]) > 1, row["question_id"]
            causes["a word that begins with the letter"] += 1
    assert causes == {"the last of several stated answers": 551, "a word that begins with the letter": 6}
