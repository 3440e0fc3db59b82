"""Finding answers by the rules of a definition."""

from __future__ import annotations

import pytest

from runner.contract.rules.grading import AnswerRule, Find
from runner.rules.answers import find_answer


@pytest.mark.parametrize(
    ("rule", "text", "answer"),
    [
        (AnswerRule(find=Find.TEXT), "<think>Rome?</think>\n Paris \n", "Paris"),
        (AnswerRule(find=Find.LAST_LINE), "Let me see.\n\nParis\n\n", "Paris"),
        (AnswerRule(find=Find.REGEX, pattern=r"answer: (\w+)"), "answer: Rome. No, answer: Paris.", "Paris"),
        (AnswerRule(find=Find.REGEX, pattern=r"\d+"), "1, 2, 30", "30"),
        (AnswerRule(find=Find.REGEX, pattern=r"(?i)ANSWER: (\w+)"), "nothing", None),
        (AnswerRule(find=Find.NUMBER), "so #### 1,200", "1200"),
        (AnswerRule(find=Find.LETTER), "The answer is (C).", "C"),
        (AnswerRule(find=Find.CODE), "x\n```python\nprint(1)\n```", "print(1)"),
        (AnswerRule(find=Find.JSON), '{"a": [1, 2]}', '{"a": [1, 2]}'),
        (AnswerRule(find=Find.JSON, path="$.a[1]"), 'Here:\n```json\n{"a": [1, 2]}\n```', "2"),
        (AnswerRule(find=Find.JSON, path="answer"), 'I say {"answer": "x"} and then {"answer": "Paris"}.', "Paris"),
        (AnswerRule(find=Find.JSON, path="$.b"), '{"a": 1}', None),
        (AnswerRule(find=Find.JSON), "no json [ here {", None),
        (AnswerRule(find=Find.TEXT), "   ", None),
    ],
)
def test_answers(rule: AnswerRule, text: str, answer: str | None) -> None:
    assert find_answer(rule, text).code == answer


def test_an_answer_that_was_cut_off_counts_only_if_its_end_is_seen() -> None:
    assert not find_answer(AnswerRule(find=Find.TEXT), "Paris and").complete
    assert find_answer(AnswerRule(find=Find.REGEX, pattern="answer: (\\w+)"), "answer: Paris, because").complete


@pytest.mark.parametrize("text", ["[" * 400_000, '{"a":' * 100_000, "(" * 200_000 + "a" * 200_000])
def test_hostile_texts_end(text: str) -> None:
    find_answer(AnswerRule(find=Find.JSON), text)
    find_answer(AnswerRule(find=Find.REGEX, pattern=r"(a+)+$"), text)
