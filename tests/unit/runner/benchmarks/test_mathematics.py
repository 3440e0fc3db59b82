"""Mathematical answers, compared in the sandbox: what is equal, what is not, and what must not harm the runner."""

from __future__ import annotations

import time

import pytest

from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits
from runner.grading import mathematics
from runner.grading.mathematics import judge_mathematics
from runner.sandbox.executor import Executor

pytestmark = pytest.mark.anyio

EQUAL = [
    (r"\frac{1}{2}", "0.5"),
    (r"\dfrac12", r"\frac{1}{2}"),
    ("1/2", r"\frac12"),
    ("(x+1)^2", "x^2+2x+1"),
    (r"\{1, 2\}", r"\{2,1\}"),
    (r"2\sqrt{2}", r"\sqrt{8}"),
    (r"x = 5", "5"),
    (r"3{,}000", "3000"),
    (r"90^\circ", "90"),
    (r"\$5", "5"),
    (r"6 \text{ cm}", "6"),
    ("025", "25"),
    (r"\left( 3, \frac{\pi}{2} \right)", r"(3,\frac{\pi}{2})"),
    (r"\begin{pmatrix} -2 \\ 1 \end{pmatrix}", r"\begin{pmatrix}-2\\1\end{pmatrix}"),
    (r"\text{Evelyn}", "Evelyn"),
    (r"\text{(C)}", "C"),
    (r"(-\infty, 2) \cup (3, \infty)", r"(-\infty,2)\cup(3,\infty)"),
    ("p - q", "p-q"),
    ("1,-2", "-2,1"),
    (r"\frac{3\sqrt{3}}{4}", r"\frac{3 \sqrt3}4"),
]
DIFFERENT = [
    ("2", "1"),
    ("0.33", r"\frac{1}{3}"),
    ("[0,1)", "(0,1]"),
    ("(2,1)", "(1,2)"),
    ("x+1", "x-1"),
    (r"\sqrt{8}", "3"),
    (r"\text{Carla}", r"\text{Evelyn}"),
    (r"\{1\}", r"\{1,2\}"),
    ("", "0"),
    ("]]]", "5"),
]
HOSTILE = [
    "9^{9^{9^{9^{9}}}}",
    "(10^8)!",
    "{" * 900 + "1" + "}" * 900,
    "(" * 900 + "1",
    r"\sum_{k=1}^{10^{12}} \sin(k^2)",
    r"\int_0^1 e^{e^{e^{x^x}}} dx",
    "+".join(["x"] * 900),
    "^".join(["9"] * 900),
    "__import__('os').system('echo hacked')",
    r"\text{__import__('os')._exit(0)}",
    "True",
    r"\operatorname{eval}(1)",
    "\x00\ud800",
]


async def judged(executor: Executor, answer: str, *targets: str, cpu_s: float = 3.0) -> Outcome:
    verdict = await judge_mathematics(answer, targets, executor, ExecutionLimits(), cpu_s)
    return verdict.outcome


@pytest.mark.parametrize(("answer", "target"), EQUAL)
async def test_equal(executor: Executor, answer: str, target: str) -> None:
    assert await judged(executor, answer, target) is Outcome.PASSED


@pytest.mark.parametrize(("answer", "target"), DIFFERENT)
async def test_different(executor: Executor, answer: str, target: str) -> None:
    assert await judged(executor, answer, target) is Outcome.WRONG_ANSWER


async def test_one_of_several_targets_suffices(executor: Executor) -> None:
    assert await judged(executor, "3", "2", "3") is Outcome.PASSED
    assert await judged(executor, "4", "2", "3") is Outcome.WRONG_ANSWER


@pytest.mark.parametrize("answer", HOSTILE, ids=range(len(HOSTILE)))
async def test_what_a_model_writes_cannot_harm_the_runner(executor: Executor, answer: str) -> None:
    begin = time.monotonic()
    assert await judged(executor, answer, "1", cpu_s=1.0) is Outcome.WRONG_ANSWER
    assert time.monotonic() - begin < 60
    assert await judged(executor, "2/2", "1") is Outcome.PASSED


async def test_a_long_text_is_not_even_parsed(executor: Executor) -> None:
    verdict = await judge_mathematics("1+" * 5000 + "1", ["5001"], executor, ExecutionLimits())
    assert (verdict.outcome, verdict.usage.cpu_s) == (Outcome.WRONG_ANSWER, 0)


async def test_without_the_library_the_answer_is_not_called_wrong(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = mathematics._program()
    monkeypatch.setattr(mathematics, "_program", lambda: source.replace("math_verify", "math_verify_not_installed"))
    verdict = await judge_mathematics("1/2", ["0.5"], executor, ExecutionLimits())
    assert verdict.outcome is Outcome.INFRA_ERROR
    assert "not installed" in verdict.detail
