"""Recorded answers of the demo models, looked up by the problem statement in the prompt.

The demo provider serves these texts as if a model had written them. This module knows only statements and recorded texts,
nothing of tests, grading or whether an answer is right.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from orchestrator.gateway.demo.answers.word_counts import word_count_eval

#: The models that have recorded answers to the sample problems.
MODELS = ("demo-strong", "demo-weak")

#: What each model answers when asked to write an eval: the name of a recording in `evals.jsonl`.
EVALS = {
    "demo-strong": "good",
    "demo-weak": "repaired",
    "demo-eval-good": "good",
    "demo-eval-syntax": "syntax",
    "demo-eval-import": "import",
    "demo-eval-constant": "constant",
    "demo-eval-hostile": "hostile",
}
EVAL_MARK = "def evaluate(trace: dict) -> dict:"
SAMPLE_MARK = "look_up_order"
"""A step that every sample trace contains."""


class StopReason(StrEnum):
    """Why the recorded model stopped, in the words of Anthropic's protocol."""

    END_TURN = "end_turn"  #: the answer is complete
    MAX_TOKENS = "max_tokens"  #: the answer was cut off
    REFUSAL = "refusal"  #: the model declined


@dataclass(frozen=True)
class DemoAnswer:
    """One recorded answer."""

    question_id: str
    sample: int
    text: str
    thinking: str | None
    stop_reason: StopReason
    input_tokens: int
    output_tokens: int


class DemoAnswers:
    """All recorded answers of one demo model."""

    def __init__(
        self, statements: Mapping[str, str], answers: Sequence[DemoAnswer], evals: Sequence[DemoAnswer] = ()
    ) -> None:
        """`statements` maps question ids to `question_content`; the answers to a question are ordered by sample. `evals`
        are the answers to requests to write an eval, turn by turn; the last one is repeated."""
        self._evals = evals
        self._statements = {question_id: _squeeze(statement) for question_id, statement in statements.items()}
        self._answers: dict[str, list[DemoAnswer]] = {}
        for answer in answers:
            self._answers.setdefault(answer.question_id, []).append(answer)

    def find(self, prompt_text: str, sample: int) -> DemoAnswer | None:
        """The answer to the problem whose statement is in the prompt; None if no statement or no answer is found.

        Whitespace and text around the statement do not matter. If a prompt holds several statements (examples first), the
        last one is the question. Samples beyond the recorded ones start again from the first.
        """
        if EVAL_MARK in prompt_text and self._evals:
            return _eval_answer(self._evals[min(sample, len(self._evals) - 1)], prompt_text)
        if not self._answers:
            return None
        prompt = _squeeze(prompt_text)
        position, question_id = max((prompt.rfind(text), name) for name, text in self._statements.items())
        recorded = self._answers.get(question_id) if position >= 0 else None
        return recorded[sample % len(recorded)] if recorded else None


def load(model: str) -> DemoAnswers:
    """Read the recorded answers of `model`. Raises KeyError, listing the known models, for any other."""
    if model not in EVALS:
        raise KeyError(f"no recorded answers for {model!r}; there are some for {', '.join(EVALS)}")
    evals = [_answer(line) for line in _read(files(__name__) / "evals.jsonl") if line["question_id"] == EVALS[model]]
    if model not in MODELS:
        return DemoAnswers({}, [], evals)
    problems = files("orchestrator.datasets") / "sample" / "problems.jsonl"
    recorded = files(__name__) / f"{model}.jsonl"
    return DemoAnswers(
        {problem["question_id"]: problem["question_content"] for problem in _read(problems)},
        [_answer(line) for line in _read(recorded)],
        evals,
    )


def _eval_answer(recorded: DemoAnswer, prompt_text: str) -> DemoAnswer:
    """The recording. If it is the good one but the traces are not those it was made for, a word-count eval instead."""
    if recorded.question_id != "good" or SAMPLE_MARK in prompt_text:
        return recorded
    text = word_count_eval(prompt_text)
    return recorded if text is None else replace(recorded, text=text, output_tokens=len(text) // 4)


def _answer(line: dict[str, Any]) -> DemoAnswer:
    return DemoAnswer(
        question_id=line["question_id"],
        sample=line["sample"],
        text=line["text"],
        thinking=line.get("thinking"),
        stop_reason=StopReason(line["stop_reason"]),
        input_tokens=line["input_tokens"],
        output_tokens=line["output_tokens"],
    )


def _read(source: Traversable) -> Iterator[dict[str, Any]]:
    with source.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _squeeze(text: str) -> str:
    return "".join(text.split())
