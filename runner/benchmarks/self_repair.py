"""LiveCodeBench's scenario self-repair: a program that fails its tests goes back to the model once, with the first failed
test, and the program that comes back is what counts.

As in the published scenario, the second request is no conversation: it has the statement, the program and what the checker
said, with long texts cut in the middle. A program that passes is not asked about again. The wording is ours, and has a
version.
"""

from dataclasses import dataclass, replace

from runner.benchmarks.livecodebench import LiveCodeBenchTask
from runner.contract.events import Outcome, TestResult
from runner.grading.verdict import Verdict
from runner.llm.client import Prompt
from runner.reporting.truncation import excerpt

PROMPT_VERSION = "livecodebench_self_repair-1"
SYSTEM = (
    "You repair Python 3 programs. You get a problem, a program that was written for it, and the first test that the "
    "program fails. The repaired program is run against hidden tests, so it has to be correct in every case that the "
    "statement allows."
)
TASK = """\
First say in two or three sentences what is wrong. Then write the whole repaired {what}, not only the lines that change.

"""
REPAIRED = frozenset(
    {Outcome.WRONG_ANSWER, Outcome.RUNTIME_ERROR, Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT, Outcome.OUTPUT_LIMIT}
)
"""The outcomes of a program that goes back to its author. A text without a program has nothing to repair."""
WHAT = {
    Outcome.WRONG_ANSWER: "It gives a wrong answer.",
    Outcome.RUNTIME_ERROR: "It ends with an error.",
    Outcome.TIME_LIMIT: "It exceeds the time limit.",
    Outcome.MEMORY_LIMIT: "It exceeds the memory limit.",
    Outcome.OUTPUT_LIMIT: "It prints or returns more than is allowed.",
}
SHOWN_CHARS = 300


@dataclass(frozen=True)
class SelfRepairTask(LiveCodeBenchTask):
    """A problem of LiveCodeBench's format that may be answered twice."""

    def prompt(self) -> Prompt:
        return replace(super().prompt(), version=PROMPT_VERSION)

    def repair_prompt(self, code: str, verdict: Verdict) -> Prompt:
        what = "class" if self.entry else "program"
        parts = [
            f"# Problem\n\n{self.statement}",
            f"# The {what}\n\n```python\n{code}\n```",
            f"# What is wrong with it\n\n{feedback(verdict)}",
            f"# What to hand in\n\n{TASK.format(what=what)}{self.form}",
        ]
        return Prompt(SYSTEM, "\n\n".join(parts), PROMPT_VERSION)


def needs_repair(verdict: Verdict) -> bool:
    return verdict.outcome in REPAIRED


def feedback(verdict: Verdict) -> str:
    """What the checker says of the first failed test, as far as it is known."""
    lines = [WHAT[verdict.outcome]]
    failed = next((test for test in verdict.tests if test.outcome is not Outcome.PASSED), None)
    if failed is not None:
        lines += [f"{name}:\n{shortened(text)}" for name, text in _texts(failed) if text]
    return "\n\n".join(lines)


def repaired(first: Verdict, second: Verdict) -> Verdict:
    """The verdict on the repaired program, which says what it was before."""
    return replace(second, detail=excerpt(f"{second.detail} (before the repair: {first.outcome}, {first.detail})"))


def shortened(text: str) -> str:
    text = text.rstrip("\n")
    if len(text) <= SHOWN_CHARS:
        return text
    half = SHOWN_CHARS // 2
    return f"{text[:half]}...(truncated)...{text[-half:]}"


def _texts(test: TestResult) -> list[tuple[str, str | None]]:
    shown = [("Input", test.input)]
    if test.outcome is Outcome.WRONG_ANSWER:
        shown.append(("Output of the program", test.got))
    shown.append(("Expected", test.expected))
    if test.outcome is Outcome.RUNTIME_ERROR:
        shown.append(("Error", (test.stderr or "")[-SHOWN_CHARS:]))
    return shown
