"""Cuts what runners report to sizes that the database and the pages can hold, and computes digests of answers.

A runner executes untrusted code, which may take it over. The contract bounds numbers; this module bounds texts, lists and
free-form facts. What an honest runner sends is well within these bounds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from sqlmodel import Session

from orchestrator.runs import item_queries
from orchestrator.runs.tables import ItemRow
from runner.contract.commands import RepeatFacts
from runner.contract.events import ItemResult, Judgement, Outcome, TestResult
from runner.contract.harness import MAX_ID_CHARS, MAX_TEXT_CHARS

TEXT_CHARS = 1_100_000
"""For prompt, answer and code; the runner itself cuts an answer at a million."""
THINKING_CHARS = 220_000
EXCERPT_CHARS = 10_000
"""For excerpts of one test. The output of a command is cut at ten times that."""
DETAIL_CHARS = 4_000
MAX_LOG_CHARS = 4_000
NAME_CHARS = 400
MAX_TESTS = 10_000
MAX_CALLS = 100
MAX_JUDGEMENTS = 20
FACT_CHARS = 2_000
MAX_FACTS = 50
CUT = "\n[... cut ...]"

SCORED = frozenset({Outcome.PASSED, Outcome.WRONG_ANSWER})
"""Outcomes that may have a score; with any other, nothing was scored."""
OWN_FACTS = frozenset({"stages", "door", "agent", "remote", "stood_ready", "started_at", "finished_at"})
"""Facts of an attempt that only the orchestrator may set."""


def storable(text: str) -> str:
    """Replaces NUL, which a model may write but PostgreSQL cannot store in texts."""
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}")


def clip(text: str, limit: int) -> str:
    """At most `limit` characters of a text, with a mark if it was longer."""
    return text if len(text) <= limit else text[:limit] + CUT


def cut(text: str, limit: int) -> str:
    """Like `clip`, for a text column."""
    return storable(clip(text, limit))


def bounded_item(item: ItemResult) -> ItemResult:
    if _is_small(item):
        return item
    changes: dict[str, Any] = {
        "score": item.score if item.outcome in SCORED else None,
        "detail": cut(item.detail, DETAIL_CHARS),
        "prompt": clip(item.prompt, TEXT_CHARS),
        "answer": clip(item.answer, TEXT_CHARS),
        "thinking": clip(item.thinking, THINKING_CHARS),
        "code": None if item.code is None else clip(item.code, TEXT_CHARS),
        "judge_prompt": clip(item.judge_prompt, TEXT_CHARS),
        "judgements": [_bounded_judgement(judgement) for judgement in item.judgements[:MAX_JUDGEMENTS]],
        "prompt_version": clip(item.prompt_version, NAME_CHARS),
        "extraction_rule": clip(item.extraction_rule, NAME_CHARS),
        "exit": clip(item.exit, NAME_CHARS),
        "tests": [_bounded_test(test) for test in item.tests[:MAX_TESTS]],
        "calls": [
            call.model_copy(
                update={"call_key": clip(call.call_key, NAME_CHARS), "finish_reason": clip(call.finish_reason, NAME_CHARS)}
            )
            for call in item.calls[:MAX_CALLS]
        ],
    }
    if item.repeat is not None:
        output = clip(item.repeat.output, 10 * EXCERPT_CHARS)
        figures = [figure for figure in item.repeat.figures if len(figure.name) <= NAME_CHARS][:MAX_FACTS]
        changes["repeat"] = item.repeat.model_copy(update={"output": output, "figures": figures})
    return item.model_copy(update=changes)


def _is_small(item: ItemResult) -> bool:
    """Whether there is nothing to cut, as in nearly all items: looked at first, because copying costs more."""
    return (
        not item.tests
        and not item.judgements
        and item.repeat is None
        and item.score is None
        and len(item.calls) <= MAX_CALLS
        and all(max(len(call.call_key), len(call.finish_reason)) <= NAME_CHARS for call in item.calls)
        and max(len(item.prompt_version), len(item.extraction_rule), len(item.exit), len(item.detail)) <= NAME_CHARS
        and max(len(item.prompt), len(item.answer), len(item.thinking), len(item.code or "")) <= THINKING_CHARS
        and not item.judge_prompt
        and "\x00" not in item.detail
    )


def unplanned_item_problem(item: ItemResult, benchmarks: Sequence[str]) -> str | None:
    """Why an item that no plan lists cannot be stored; None if it can."""
    if item.benchmark not in benchmarks:
        return f"names {item.benchmark[:100]!r}, which is not its benchmark"
    if not item.problem_id or len(item.problem_id) > MAX_ID_CHARS or not 0 <= item.sample_index < 1 << 31:
        return f"has no usable id: it must have 1 to {MAX_ID_CHARS} characters"
    if "\x00" in item.problem_id:
        return "has an id with a NUL character"
    if max(len(item.prompt), len(item.answer), len(item.thinking)) > MAX_TEXT_CHARS or item.code or item.tests or item.calls:
        return f"is larger than a harness's item may be ({MAX_TEXT_CHARS} characters for input and output each)"
    return None


def bounded_facts(earlier: Mapping[str, Any], reported: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of an attempt, merged with those that the runner newly reported."""
    facts = dict(earlier)
    for name, value in reported.items():
        if name in OWN_FACTS or len(name) > NAME_CHARS or (name not in facts and len(facts) >= MAX_FACTS):
            continue
        facts[storable(name)] = _bounded_fact(value)
    return facts


def stored_item(data: Mapping[str, Any], outcome: str) -> ItemResult:
    """An item from its stored row. Invalid fields, which an earlier version may have stored, get their default."""
    values = dict(data)
    try:
        return ItemResult.model_validate(values)
    except ValidationError as error:
        for problem in error.errors():
            values.pop(str(problem["loc"][0]), None)
    named = {"benchmark": str(data.get("benchmark", "")), "problem_id": str(data.get("problem_id", ""))}
    detail = f"The stored result is damaged. {str(data.get('detail') or '')[:DETAIL_CHARS]}".strip()
    return ItemResult.model_validate({**values, **named, "outcome": Outcome(outcome), "detail": detail})


def _bounded_judgement(judgement: Judgement) -> Judgement:
    names = {name: clip(getattr(judgement, name), NAME_CHARS) for name in ("call_key", "finish_reason", "model", "trouble")}
    return judgement.model_copy(update={**names, "text": clip(judgement.text, 10 * EXCERPT_CHARS)})


def _bounded_test(test: TestResult) -> TestResult:
    texts = {name: getattr(test, name) for name in ("input", "expected", "got", "stderr")}
    return test.model_copy(update={name: text and clip(text, EXCERPT_CHARS) for name, text in texts.items()})


def _bounded_fact(value: Any) -> Any:
    if isinstance(value, str):
        return cut(value, FACT_CHARS)
    try:
        text = json.dumps(value, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError, TypeError):
        return None
    if len(text) > FACT_CHARS or "\\u0000" in text:
        return cut(text, FACT_CHARS)
    return value


LAST_LINE_CHARS = 500


def how_it_failed(row: ItemRow) -> str:
    """How a repeat ended, and the last line of its output, where most programs say what is wrong."""
    facts = stored_item(row.data, row.outcome).repeat or RepeatFacts()
    lines = [line.strip() for line in facts.output.splitlines() if line.strip()]
    return ": ".join(filter(None, (row.detail, lines[-1][:LAST_LINE_CHARS] if lines else "")))


def finish_of(data: Mapping[str, Any]) -> str:
    """Why the model stopped. Answers from a file count as complete."""
    calls = data.get("calls") or [{}]
    return str(calls[-1].get("finish_reason") or "stop")


def answer_digest(data: Mapping[str, Any]) -> str:
    """The digest of the answer in a stored result."""
    return _digest(data.get("answer") or "", data.get("code"), finish_of(data))


def answer_digest_of(item: ItemResult) -> str:
    """The digest of a result that is not stored yet; the same as that of its stored form."""
    return _digest(item.answer, item.code, (item.calls[-1].finish_reason if item.calls else "") or "stop")


def _digest(answer: str, code: str | None, finish: str) -> str:
    return hashlib.sha256(json.dumps([answer, code, finish]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """A verdict and the answer that it judges."""

    benchmark: str
    problem_id: str
    sample_index: int
    answer: str
    outcome: str
    parity_outcome: str | None
    score: float | None = None


def judged_answers(session: Session, run_id: str) -> list[JudgedAnswer]:
    """All judged answers of a run in plan order. Old results without a stored digest are read in full to compute it."""
    answers = []
    for position, benchmark, problem_id, sample, digest, outcome, parity, score in item_queries.judged(session, run_id):
        answer = digest or _digest_of(session, run_id, position)
        answers.append(JudgedAnswer(benchmark, problem_id, sample, answer, outcome, parity, score))
    return answers


def _digest_of(session: Session, run_id: str, position: int) -> str:
    row = item_queries.at(session, run_id, position)
    assert row is not None
    session.expunge(row)
    return answer_digest(row.data)
