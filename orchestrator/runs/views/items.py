"""One item: texts shortened to what a page can hold, highlighted code, tests with expected and actual output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.dashboard.rendering.highlight import highlight
from orchestrator.dashboard.rendering.side_by_side import SidePair, side_by_side
from orchestrator.dashboard.texts import visible
from orchestrator.runs.views.code import CodeLine, code_lines
from runner.contract.events import CallFacts, ItemResult, Outcome, TestResult

TEXT_CHARS = 20_000
TEST_CHARS = 4_000
TESTS_ON_A_PAGE = 10
PASSED_SHOWN = 500
DIFF_LINES = 200
MOST_TESTS = 10_000
STDERR_LINES = 12
TEXTS = ("prompt", "answer", "thinking", "code", "judge_prompt")


@dataclass(frozen=True)
class Excerpt:
    """The beginning of a text, and the length of the whole."""

    text: str
    length: int
    cut: bool


@dataclass(frozen=True)
class TestView:
    index: int
    outcome: str
    passed: bool
    cpu_s: float
    wall_s: float
    peak_bytes: int
    input: Excerpt | None
    expected: Excerpt | None
    got: Excerpt | None
    stderr: Excerpt | None
    error: list[str]
    """The last lines of the standard error, where programs say what is wrong."""
    diff: list[SidePair]
    diff_cut: bool


@dataclass(frozen=True)
class CallView:
    """A model call as the runner saw it, with its row of the gateway's ledger."""

    key: str
    input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cached_tokens: int
    latency_s: float
    finish_reason: str
    replayed: bool
    state: str | None
    cost_usd: float | None
    tries: int | None
    queue_s: float | None
    provider_s: float | None
    error: str | None
    payer: str | None


@dataclass(frozen=True)
class JudgementView:
    """What a model that judges said about the answer."""

    model: str
    text: Excerpt
    worth: float | None
    trouble: str
    call: CallView


@dataclass(frozen=True)
class ItemPage:
    item: ItemResult
    prompt: Excerpt
    answer: Excerpt
    thinking: Excerpt
    code: list[CodeLine] | None
    code_cut: bool
    failed: list[TestView]
    """One page of the failed tests, which are the reason to open an item."""
    failed_count: int
    more_failed: int | None
    """Where the next page of failed tests begins."""
    passed: list[TestView]
    passed_count: int
    not_run: str
    """Which tests were not run because an earlier one failed, in words; empty if all were."""
    slowest: TestView | None
    calls: list[CallView]
    judgements: list[JudgementView]
    judge_prompt: Excerpt


def item_page(item: ItemResult, ledger: Mapping[str, Any], start: int = 0) -> ItemPage:
    """`ledger` has the rows of the gateway's calls by key; `start` is the first failed test to show."""
    tests = sorted(item.tests, key=lambda test: test.index)
    failed = [test for test in tests if test.outcome is not Outcome.PASSED]
    passed = [test for test in tests if test.outcome is Outcome.PASSED]
    end = start + TESTS_ON_A_PAGE
    slowest = max(tests, key=lambda test: test.usage.cpu_s, default=None)
    code = item.code
    return ItemPage(
        item=item,
        prompt=excerpt(item.prompt, TEXT_CHARS),
        answer=excerpt(item.answer, TEXT_CHARS),
        thinking=excerpt(item.thinking, TEXT_CHARS),
        code=None if code is None else code_lines(highlight(visible(code[: 3 * TEXT_CHARS]))),
        code_cut=code is not None and len(code) > 3 * TEXT_CHARS,
        failed=[_test(test) for test in failed[start:end]],
        failed_count=len(failed),
        more_failed=end if len(failed) > end else None,
        passed=[_test(test) for test in passed[:PASSED_SHOWN]],
        passed_count=len(passed),
        not_run=_not_run(item, failed),
        slowest=None if slowest is None else _test(slowest),
        calls=[_call(call, ledger) for call in item.calls],
        judgements=[
            JudgementView(said.model, excerpt(said.text, TEST_CHARS), said.worth, said.trouble, _call(said, ledger))
            for said in item.judgements
        ],
        judge_prompt=excerpt(item.judge_prompt, TEXT_CHARS),
    )


def excerpt(text: str, chars: int) -> Excerpt:
    return Excerpt(visible(text[:chars]), len(text), len(text) > chars)


def _not_run(item: ItemResult, failed: Sequence[TestResult]) -> str:
    if not failed or item.judgements:
        return ""
    known = {test.index for test in item.tests}
    first = failed[0].index
    missing = [index for index in range(first + 1, min(item.tests_total, MOST_TESTS)) if index not in known]
    if not missing:
        return ""
    return ", ".join(_span(members) for members in _runs(missing))


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """Consecutive numbers together."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _span(numbers: Sequence[int]) -> str:
    return str(numbers[0] + 1) if len(numbers) == 1 else f"{numbers[0] + 1} to {numbers[-1] + 1}"


def _test(test: TestResult) -> TestView:
    passed = test.outcome is Outcome.PASSED
    both = not passed and test.expected is not None and test.got is not None
    lines, cut = side_by_side(_shown(test.expected), _shown(test.got), DIFF_LINES) if both else ([], False)
    return TestView(
        index=test.index,
        outcome=test.outcome.value,
        passed=passed,
        cpu_s=test.usage.cpu_s,
        wall_s=test.usage.wall_s,
        peak_bytes=test.usage.peak_bytes,
        input=_maybe(test.input),
        expected=_maybe(test.expected),
        got=_maybe(test.got),
        stderr=_maybe(test.stderr),
        error=visible(test.stderr or "").rstrip().splitlines()[-STDERR_LINES:],
        diff=lines,
        diff_cut=cut,
    )


def _shown(text: str | None) -> str:
    return visible((text or "")[:TEXT_CHARS])


def _maybe(text: str | None) -> Excerpt | None:
    return None if text is None else excerpt(text, TEST_CHARS)


def _call(call: CallFacts, ledger: Mapping[str, Any]) -> CallView:
    row = ledger.get(call.call_key)
    return CallView(
        key=call.call_key,
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        reasoning_tokens=call.reasoning_tokens,
        cached_tokens=call.cached_tokens,
        latency_s=call.latency_s,
        finish_reason=call.finish_reason,
        replayed=call.replayed,
        state=row.state if row else None,
        cost_usd=row.cost_usd if row and row.priced else None,
        tries=row.tries if row else None,
        queue_s=row.queue_s if row else None,
        provider_s=row.provider_s if row else None,
        error=row.error if row else None,
        payer=f"{row.payer} {row.payer_name}".strip() if row else None,
    )
