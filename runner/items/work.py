"""Asks, extracts, judges and reports the items of a run; several at once, each with exactly one outcome.

Model calls and executions have separate limits, so that judging never delays the next call. An error in one item becomes
that item's outcome and never ends the run; errors that end a run are raised as `RunFailed`.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass

from runner.benchmarks.adapter import Adapter, Task, adapter_for
from runner.benchmarks.defined import DefinedTask
from runner.benchmarks.python_file import PythonTask
from runner.benchmarks.self_repair import SelfRepairTask
from runner.contract.events import FailureReason, ItemResult, Outcome
from runner.contract.run_spec import BenchmarkSpec, ExecutionLimits, GivenAnswer, ItemKey, RunKind, RunSpec, call_key
from runner.errors import (
    BudgetExhausted,
    CallCollected,
    CallsEnded,
    GatewayAway,
    PriceUnknown,
    ProblemError,
    ProviderFailed,
    RunDeferred,
    RunFailed,
)
from runner.grading.verdict import Verdict
from runner.items.asking import Asker
from runner.items.call_facts import call_facts
from runner.items.conversation import talk
from runner.items.judging import JudgedByModel, Judging
from runner.items.problems import Problems
from runner.items.repairing import Graded, ask_and_repair, graded
from runner.items.results import judged_item, told_item, turn_key, unanswered_item
from runner.llm.calls import Calls
from runner.llm.client import Completion, Finish, Prompt
from runner.log import Log
from runner.reporting.reporter import Reporter
from runner.reporting.truncation import ANSWER_CHARS, THINKING_CHARS, cut
from runner.rules.extraction import Extraction, Rule, search
from runner.sandbox.executor import Executor
from runner.sandbox.pool.worker import SandboxLostError

TRIES = 2


@dataclass(frozen=True)
class Item:
    benchmark: str
    adapter: Adapter
    problem_id: str
    sample_index: int

    @property
    def key(self) -> ItemKey:
        return ItemKey(benchmark=self.benchmark, problem_id=self.problem_id, sample_index=self.sample_index)

    @property
    def call_key(self) -> str:
        return call_key(self.benchmark, self.problem_id, self.sample_index)


def items_of(spec: RunSpec) -> list[Item]:
    """Returns the unfinished items in order; raises `RunFailed` for a benchmark that this runner cannot read."""
    finished = {(key.benchmark, key.problem_id, key.sample_index) for key in spec.finished}
    items: list[Item] = []
    for benchmark in spec.benchmarks:
        adapter = adapter_for(benchmark)
        if adapter is None:
            message = f"this runner has no adapter {benchmark.adapter!r} for benchmark {benchmark.name}; is its image older?"
            raise RunFailed(FailureReason.DATASET_ERROR, message)
        for problem_id, sample in benchmark.items(spec.samples_per_problem):
            if (benchmark.name, problem_id, sample) not in finished:
                items.append(Item(benchmark.name, adapter, problem_id, sample))
    return items


class Work:
    """Processes items; `run` returns how many it finished. `judges` are the calls to the model that judges a benchmark, by
    the benchmark's name."""

    def __init__(
        self,
        spec: RunSpec,
        items: list[Item],
        reporter: Reporter,
        problems: Problems,
        calls: Calls,
        executor: Executor,
        log: Log,
        judges: Mapping[str, Calls] | None = None,
    ) -> None:
        self._spec, self._items, self._log = spec, items, log
        self._reporter, self._problems, self._executor = reporter, problems, executor
        self._model = Asker(calls, len(items), measured_before=bool(spec.finished))
        judge_askers = {
            name: Asker(of_judge, sum(item.benchmark == name for item in items), measured_before=bool(spec.finished))
            for name, of_judge in (judges or {}).items()
        }
        self._judges = {
            part.name: Judging(part.rules.judge.grader, judge_askers[part.name])
            for part in spec.benchmarks
            if part.name in judge_askers and part.rules is not None and part.rules.judge.grader is not None
        }
        self._askers = [self._model, *judge_askers.values()]
        self._judging = asyncio.Semaphore(spec.sandbox_slots)
        self._left = Counter((item.benchmark, item.problem_id) for item in items)
        self._limits = {benchmark.name: _limits(spec, benchmark) for benchmark in spec.benchmarks}
        self._end: RunFailed | None = None
        self._unreadable = 0
        self._why_unreadable = "no problem could be understood"
        self._collected = 0
        self.finished = 0

    async def run(self) -> int:
        """Raises `RunDeferred` if calls wait for a batch, and `RunFailed` if the run ends early; items in progress are
        finished and reported first."""
        queue = iter(self._items)
        waiting = self._spec.concurrency * (2 if self._judges else 1)
        workers = min(waiting + 2 * self._spec.sandbox_slots, max(len(self._items), 1))
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._worker(queue))
        if self._end is not None:
            raise self._end
        if self._collected:
            raise RunDeferred(self._collected)
        if self._items and self._unreadable == len(self._items):
            raise RunFailed(FailureReason.DATASET_ERROR, str(self._problems.failed or self._why_unreadable))
        return self.finished

    async def _worker(self, queue: Iterator[Item]) -> None:
        for item in queue:
            if self._end is not None:
                return
            try:
                result = await self._item(item)
            except BudgetExhausted as error:
                self._end_with(FailureReason.BUDGET_EXHAUSTED, str(error))
                return
            except PriceUnknown as error:
                self._end_with(FailureReason.PRICE_UNKNOWN, str(error))
                return
            except SandboxLostError as error:  # the items that are left are for the next attempt
                self._end_with(FailureReason.RUNNER_ERROR, f"The sandbox is lost: {error}.")
                return
            except CallCollected:
                self._collected += 1
                continue
            except CallsEnded:
                return
            finally:
                self._done_with(item)
                self._look_at_refusals()
            await self._reporter.item(result)
            self.finished += 1

    def _done_with(self, item: Item) -> None:
        key = (item.benchmark, item.problem_id)
        self._left[key] -= 1
        if not self._left[key]:
            self._problems.release(*key)

    async def _item(self, item: Item) -> ItemResult:
        """Processes one item; retries once after an error of ours."""
        problem = ""
        for left in reversed(range(TRIES)):
            try:
                result = await self._once(item)
                if result.outcome is not Outcome.INFRA_ERROR or not left:
                    return result
                self._log("item.again", item=item.call_key, trouble=result.detail)
            except (BudgetExhausted, PriceUnknown, CallsEnded, CallCollected, SandboxLostError):
                raise
            except ProblemError as error:
                self._unreadable += 1
                self._why_unreadable = str(error)
                return unanswered_item(item.key, Outcome.INFRA_ERROR, str(error))
            except ProviderFailed as error:
                return unanswered_item(item.key, Outcome.PROVIDER_ERROR, str(error))
            except GatewayAway as error:
                return unanswered_item(item.key, Outcome.INFRA_ERROR, f"the gateway did not answer: {error}")
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
                self._log("item.trouble", item=item.call_key, trouble=problem)
                self._reporter.log("warning", f"error in {item.call_key}: {problem}")
        return unanswered_item(item.key, Outcome.INFRA_ERROR, problem)

    async def _once(self, item: Item) -> ItemResult:
        if self._spec.kind == RunKind.GRADE:
            return await self._grade(item)
        asked_task = await self._task(item)
        if isinstance(asked_task, PythonTask):
            return await self._talk(item, asked_task)
        prompt, repairs = asked_task.prompt(), isinstance(asked_task, SelfRepairTask)
        del asked_task
        if repairs:
            return await self._repair(item, prompt)
        completion = await self._model.ask(prompt, item.call_key)
        async with self._judging:
            task = await self._task(item)
            extraction = await search(task.extract, completion.text)
            verdict = await self._verdict(item, task, completion, extraction)
            del task
        result = judged_item(item.key, completion.text, extraction, await self._by_model(item, extraction, verdict))
        question = {"prompt": cut(prompt.text, ANSWER_CHARS), "prompt_version": prompt.version}
        question["thinking"] = cut(completion.thinking, THINKING_CHARS)
        return result.model_copy(update={**question, "calls": [call_facts(completion, item.call_key)]})

    async def _talk(self, item: Item, task: PythonTask) -> ItemResult:
        """Asks turn by turn, and has the user's own program score the answer."""
        ask = self._turns_of(item)
        said = await talk(task, ask, self._executor, self._limits[item.benchmark], item.call_key)
        async with self._judging:
            verdict = said.verdict or await self._verdict(item, task, said.last, said.extraction)
        assert verdict is not None, "no model judges a Python file"
        return told_item(item.key, said.completions, said.extraction, verdict, said.asked, said.prompt.version)

    async def _repair(self, item: Item, prompt: Prompt) -> ItemResult:
        """Asks for a program, and once more if it fails."""

        async def judge(completion: Completion) -> Graded:
            async with self._judging:
                task = await self._task(item)
                assert isinstance(task, SelfRepairTask)
                extraction = await search(task.extract, completion.text)
                verdict = await self._verdict(item, task, completion, extraction)
            assert verdict is not None, "no model judges programs"
            return graded(task, extraction, verdict)

        done = await ask_and_repair(prompt, self._turns_of(item), judge)
        return told_item(item.key, done.completions, done.extraction, done.verdict, done.asked, prompt.version)

    def _turns_of(self, item: Item) -> Callable[[Prompt, int], Awaitable[Completion]]:
        """Asks with a key for each turn."""
        return lambda prompt, turn: self._model.ask(prompt, turn_key(item.key, turn))

    async def _grade(self, item: Item) -> ItemResult:
        """Judges a stored answer: the same way, without a call to the model that gave it."""
        async with self._judging:
            task = await self._task(item)
            stored = self._problems.given(item.benchmark, item.problem_id, item.sample_index)
            text = stored.text or ""
            extraction = Extraction(stored.code or "", Rule.GIVEN)
            if stored.code is None:
                extraction = await search(task.extract, text)
            verdict = await self._verdict(item, task, Completion(text, finish=_finish(stored)), extraction)
            version = task.prompt().version if item.benchmark in self._judges else ""
        result = judged_item(item.key, text, extraction, await self._by_model(item, extraction, verdict))
        return result.model_copy(update={"prompt_version": version})

    async def _verdict(self, item: Item, task: Task, completion: Completion, extraction: Extraction) -> Verdict | None:
        """None if a model is to judge the answer, which happens outside the limit on executions."""
        outcome = unjudged(completion, extraction.code, extraction.complete)
        if extraction.code is None or outcome is not None:
            outcome = outcome or Outcome.NO_ANSWER
            return Verdict(outcome, WHY[outcome])
        if item.benchmark in self._judges:
            return None
        return await task.judge(extraction.code, self._executor, self._limits[item.benchmark])

    async def _by_model(self, item: Item, extraction: Extraction, verdict: Verdict | None) -> Verdict | JudgedByModel:
        if verdict is not None:
            return verdict
        task = await self._task(item)
        assert isinstance(task, DefinedTask)
        return await self._judges[item.benchmark].verdict(item.key, task, extraction.code or "")

    async def _task(self, item: Item) -> Task:
        """Returns the task, parsed again each time: with its tests it is large, and calls take minutes."""
        return item.adapter(await self._problems.get(item.benchmark, item.problem_id))

    def _look_at_refusals(self) -> None:
        """Ends the run if a provider refuses every call."""
        for asker in self._askers:
            if (error := asker.refused) is not None:
                whose = "provider" if asker is self._model else "judge's provider"
                self._end_with(FailureReason.PROVIDER_ERROR, f"the {whose} refuses every call: {error}")

    def _end_with(self, reason: FailureReason, message: str) -> None:
        """Ends the run early. Waits for calls at the provider; queued calls are not made."""
        self._end = self._end or RunFailed(reason, message)
        for asker in self._askers:
            asker.end()


WHY = {
    Outcome.REFUSED: "the model declined to answer",
    Outcome.TRUNCATED: "the model reached its token limit before its answer was complete",
    Outcome.NO_ANSWER: "no answer was found in the model's text",
}


def unjudged(completion: Completion, code: str | None, complete: bool) -> Outcome | None:
    """Returns the outcome of an answer that is not judged; None if it is to be judged.

    An answer that hit the token limit is still judged if its last block is closed: the program is complete, and only prose
    is missing. If the text ends inside a block it is truncated, even if an earlier draft is complete.
    """
    if completion.finish is Finish.REFUSAL:
        return Outcome.REFUSED
    if completion.finish is Finish.LENGTH and (code is None or not complete):
        return Outcome.TRUNCATED
    return Outcome.NO_ANSWER if code is None else None


def _finish(answer: GivenAnswer) -> Finish:
    return Finish(answer.finish) if answer.finish in set(Finish) else Finish.OTHER


def _limits(spec: RunSpec, benchmark: BenchmarkSpec) -> ExecutionLimits:
    return spec.limits if benchmark.cpu_s is None else spec.limits.model_copy(update={"cpu_s": benchmark.cpu_s})
