"""Talks with the model over one item of a benchmark that is a Python file: turn by turn, each a call under its own key."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from runner.benchmarks.python_file import PythonTask, conversation, failed_verdict
from runner.benchmarks.user_program import UserCodeFailed
from runner.contract.run_spec import ExecutionLimits
from runner.grading.verdict import Verdict
from runner.llm.client import Completion, Finish, Prompt
from runner.rules.extraction import Extraction, search, without_thinking
from runner.sandbox.executor import Executor


@dataclass(frozen=True)
class Talk:
    """What was asked and answered. `verdict` is set if the benchmark's program failed in between."""

    prompt: Prompt
    """Of the first turn."""
    completions: list[Completion]
    extraction: Extraction
    messages: list[dict[str, str]]
    verdict: Verdict | None = None

    @property
    def last(self) -> Completion:
        return self.completions[-1]

    @property
    def asked(self) -> str:
        """Everything but the last answer, for the record."""
        if len(self.completions) == 1:
            return self.prompt.text
        return "\n\n".join(f"[{message['role']}]\n{message['content']}" for message in self.messages[:-1])


async def talk(
    task: PythonTask,
    ask: Callable[[Prompt, int], Awaitable[Completion]],
    executor: Executor,
    limits: ExecutionLimits,
    seed: str,
) -> Talk:
    """`ask` makes the call of a turn. A refusal or an answer that was cut off ends the conversation."""
    messages = await task.opening(executor, limits, seed)
    first = task.asked(messages)
    completions: list[Completion] = []
    verdict = None
    while True:
        completion = await ask(task.asked(messages), len(completions))
        completions.append(completion)
        answer = without_thinking(completion.text).strip()
        messages = [*messages, {"role": "assistant", "content": answer}]
        if len(completions) >= task.turns or not answer or completion.finish in (Finish.REFUSAL, Finish.LENGTH):
            break
        try:
            following = await task.next_message(messages, executor, limits, seed)
        except UserCodeFailed as error:
            verdict = failed_verdict(error)
            break
        if following is None:
            break
        messages = [*messages, {"role": "user", "content": following}]
    extraction = await search(task.extract, completions[-1].text)
    if task.turns > 1 and extraction.code is not None:
        extraction = Extraction(conversation(messages).code, conversation(messages).rule, extraction.complete)
    return Talk(first, completions, extraction, messages, verdict)
