"""Asks for a program, and once more if it fails its tests: an item of LiveCodeBench's self-repair."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from runner.benchmarks.self_repair import SelfRepairTask, needs_repair, repaired
from runner.grading.verdict import Verdict
from runner.llm.client import Completion, Prompt
from runner.rules.extraction import Extraction


@dataclass(frozen=True)
class Graded:
    """An answer with its verdict, and how to ask for its repair if it has a program that fails."""

    extraction: Extraction
    verdict: Verdict
    repair: Prompt | None


@dataclass(frozen=True)
class Repaired:
    prompts: list[Prompt]
    completions: list[Completion]
    extraction: Extraction
    verdict: Verdict

    @property
    def asked(self) -> str:
        """All requests, for the record."""
        return "\n\n".join(prompt.text for prompt in self.prompts)


def graded(task: SelfRepairTask, extraction: Extraction, verdict: Verdict) -> Graded:
    again = extraction.code is not None and needs_repair(verdict)
    return Graded(extraction, verdict, task.repair_prompt(extraction.code or "", verdict) if again else None)


async def ask_and_repair(
    prompt: Prompt, ask: Callable[[Prompt, int], Awaitable[Completion]], judge: Callable[[Completion], Awaitable[Graded]]
) -> Repaired:
    """`ask` makes the call of a turn. The last program counts, whatever it is."""
    first = await ask(prompt, 0)
    judged = await judge(first)
    if judged.repair is None:
        return Repaired([prompt], [first], judged.extraction, judged.verdict)
    second = await ask(judged.repair, 1)
    again = await judge(second)
    prompts, completions = [prompt, judged.repair], [first, second]
    return Repaired(prompts, completions, again.extraction, repaired(judged.verdict, again.verdict))
