"""Results of items: what is reported of a judged answer, of several turns, and of an item without an answer. Pure."""

from collections.abc import Sequence

from runner.contract.events import ItemResult, Outcome
from runner.contract.run_spec import ItemKey, call_key
from runner.grading.verdict import Verdict
from runner.items.call_facts import call_facts
from runner.items.judging import JudgedByModel
from runner.llm.client import Completion
from runner.reporting.truncation import ANSWER_CHARS, THINKING_CHARS, cut, excerpt
from runner.rules.extraction import Extraction


def judged_item(item: ItemKey, text: str, extraction: Extraction, judged: Verdict | JudgedByModel) -> ItemResult:
    verdict, by_model = (judged, None) if isinstance(judged, Verdict) else (judged.verdict, judged)
    return ItemResult(
        benchmark=item.benchmark,
        problem_id=item.problem_id,
        sample_index=item.sample_index,
        outcome=verdict.outcome,
        parity_outcome=verdict.parity,
        score=verdict.score,
        detail=verdict.detail,
        answer=cut(text, ANSWER_CHARS),
        code=None if extraction.code is None else cut(extraction.code, ANSWER_CHARS),
        extraction_rule=extraction.rule.value,
        tests_total=verdict.tests_total,
        tests_passed=verdict.tests_passed,
        tests=verdict.tests,
        usage=verdict.usage,
        exit=verdict.exit,
        fragile=verdict.fragile,
        judgements=by_model.judgements if by_model else [],
        judge_prompt=by_model.prompt if by_model else "",
    )


def turn_key(item: ItemKey, turn: int) -> str:
    return call_key(item.benchmark, item.problem_id, item.sample_index, turn)


def told_item(
    item: ItemKey, completions: Sequence[Completion], extraction: Extraction, verdict: Verdict, asked: str, version: str
) -> ItemResult:
    """The result of an item with a call per turn."""
    thoughts = [completion.thinking for completion in completions if completion.thinking]
    return judged_item(item, completions[-1].text, extraction, verdict).model_copy(
        update={
            "prompt": cut(asked, ANSWER_CHARS),
            "prompt_version": version,
            "thinking": cut("\n\n".join(thoughts), THINKING_CHARS),
            "calls": [call_facts(completion, turn_key(item, turn)) for turn, completion in enumerate(completions)],
        }
    )


def unanswered_item(item: ItemKey, outcome: Outcome, detail: str) -> ItemResult:
    return ItemResult(
        benchmark=item.benchmark,
        problem_id=item.problem_id,
        sample_index=item.sample_index,
        outcome=outcome,
        detail=excerpt(detail),
    )
