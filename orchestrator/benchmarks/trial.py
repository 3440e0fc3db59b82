"""Shows how answers to a problem would score, by the same rules as in the runner. Pure; programs are not executed here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runner.contract.rules.grading import EXECUTED, AnswerRule, By, Find, GradingRules
from runner.contract.rules.model_judge import ModelJudge, VerdictForm
from runner.rules.answers import find_answer
from runner.rules.comparison import is_right, texts
from runner.rules.letter_answer import TEN
from runner.rules.model_judging import JudgeQuestion, judge_prompt, read_verdict

RIGHT, WRONG, UNREADABLE = "right", "wrong", "unreadable"


@dataclass(frozen=True)
class Trial:
    """One answer and what would become of it."""

    kind: str
    """`right` or `wrong`: what the answer is meant to be. `unreadable`: a judge's text without a verdict."""
    answer: str
    taken: str | None
    """The part of the answer that counts; None if nothing in it does."""
    passed: bool


def trials(rules: GradingRules, target: Any, choices: int = TEN) -> list[Trial]:
    """A right and a wrong answer, made from the target. Empty for what is judged in the sandbox, and where no right answer
    can be derived. If a model judges, the answers are the judge's: it is not asked."""
    if rules.judge.grader is not None:
        return judge_trials(rules.judge.grader)
    if rules.judge.by in EXECUTED or (rules.judge.by is By.REGEX and rules.judge.pattern is not None):
        return []
    if rules.answer.find is Find.REGEX or (rules.judge.by is By.REGEX):
        return []
    right = texts(target)[0] if rules.judge.by is not By.JSON else json.dumps(target)
    wrong = {"A": "B"}.get(right, "A") if rules.judge.by is By.CHOICE else "0" if right != "0" else "1"
    return [
        trial(rules, kind, written(rules.answer, value), target, choices) for kind, value in ((RIGHT, right), (WRONG, wrong))
    ]


def judge_trials(judge: ModelJudge) -> list[Trial]:
    """How the judge's text would be read if it finds an answer right, wrong, or gives no verdict."""
    if judge.verdict is VerdictForm.NUMBER:
        right, wrong = "Score: 1", "Score: 0"
    else:
        by_worth = sorted(judge.worths, key=lambda name: judge.worths[name])
        right, wrong = f"Grade: {by_worth[-1]}", f"Grade: {by_worth[0]}"
    replies = {RIGHT: right, WRONG: wrong, UNREADABLE: "I cannot decide."}
    trials = []
    for kind, reply in replies.items():
        reading = read_verdict(judge, reply)
        passed = reading.worth is not None and judge.passes(reading.worth)
        trials.append(Trial(kind, reply, None if reading.worth is None else reading.verdict, passed))
    return trials


def shown_judge_prompt(rules: GradingRules, record: Mapping[str, Any]) -> str | None:
    """What the judge would be asked about an answer, here the target; None if no model judges."""
    if rules.judge.grader is None:
        return None
    target = "\n".join(texts(record["target"])) if record.get("target") else ""
    asked = JudgeQuestion(record.get("question", ""), target, record["rubric"])
    return "\n\n".join(judge_prompt(rules.judge.grader, asked, target or "(the answer)"))


def trial(rules: GradingRules, kind: str, answer: str, target: Any, choices: int = TEN) -> Trial:
    found = find_answer(rules.answer, answer, choices)
    passed = found.code is not None and is_right(rules.judge, found.code, target)
    return Trial(kind, answer, found.code, passed)


def written(rule: AnswerRule, value: str) -> str:
    """A model's text in which the rule finds the value."""
    match rule.find:
        case Find.LETTER:
            return f"The answer is ({value})."
        case Find.NUMBER:
            return f"Step by step, this gives\n#### {value}"
        case Find.LAST_LINE:
            return f"Let me think.\n{value}"
        case Find.JSON if rule.path:
            return json.dumps(_at(rule.path, value))
        case _:
            return value


def _at(path: str, value: str) -> Any:
    """The smallest JSON value that has `value` at the path; only paths of names are written."""
    nested: Any = value
    for name in reversed([part for part in path.removeprefix("$").split(".") if part]):
        nested = {name: nested}
    return nested
