"""Has a model write an eval: asks, checks, tries it on labelled traces, has it repaired, and delivers the best usable one.

Faults of an answer go back to the model only if they concern training traces; this runner does not know the labels of the
others. If nothing is usable after the last repair, the run fails with the reason.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runner.contract.evals import (
    STAGE_PERCENT,
    EvalFailure,
    EvalTask,
    JobStage,
    Judgement,
    Label,
    Round,
    generation_key,
)
from runner.contract.events import FailureReason
from runner.contract.rules.evals import ALLOWED, ENTRY, problem_of
from runner.errors import BudgetExhausted, GatewayAway, PriceUnknown, ProviderFailed, RunFailed
from runner.evals.prompt import Fault, Training, first_prompt, mistakes_text, repair_prompt
from runner.evals.trial import Subject, Trial, Unsteady, difference, differs, too_many
from runner.llm.calls import Calls
from runner.llm.client import Completion, Finish, Prompt
from runner.log import Log
from runner.reporting.reporter import Reporter
from runner.reporting.truncation import clean
from runner.rules.extraction import extract_code, search
from runner.sandbox.executor import Executor

INVALID, TIMEOUT, ERROR, EXTERNAL = "INVALID_CODE", "EXECUTION_TIMEOUT", "EXECUTION_ERROR", "EXTERNAL_API_ERROR"
SHOWN_FAILURES = 3
KEPT_PROBLEM_CHARS = 4000


class Unfit(Exception):
    """The answer cannot be used; the message is for the model, `code` for whoever asked for the eval."""

    def __init__(self, problem: str, code: str = INVALID) -> None:
        super().__init__(problem)
        self.code = code


@dataclass(frozen=True)
class Candidate:
    code: str
    judgements: list[Judgement]
    right: int


class Generation:
    def __init__(
        self,
        task: EvalTask,
        training: Sequence[Training],
        others: Sequence[Subject],
        *,
        calls: Calls,
        executor: Executor,
        slots: int,
        reporter: Reporter,
        log: Log,
    ) -> None:
        self._task, self._training, self._others = task, training, others
        self._calls, self._executor, self._slots = calls, executor, slots
        self._reporter, self._log = reporter, log
        self._subjects = sorted([*(example.subject for example in training), *others], key=lambda subject: subject.key)
        random.Random(task.seed).shuffle(self._subjects)  # so that the first ones are representative
        self._rounds: list[Round] = []
        self._words = ""
        self._stage = JobStage.FETCHING_TRACES

    async def run(self) -> None:
        """Delivers an eval, or raises `RunFailed`."""
        if self._task.draft is not None:
            await self._save(await self._drafted(self._task.draft))
            return
        first = first_prompt(self._task.criterion, self._training, sorted(ALLOWED - {"__future__"}))
        best: Candidate | None = None
        fault: Fault | None = None
        last = Unfit("the model gave no answer")
        seen: set[str] = set()
        for turn in range(self._task.repairs + 1):
            self._words = f"repair {turn} of {self._task.repairs}" if turn else ""
            prompt = first if fault is None else repair_prompt(first, fault)
            code = ""
            try:
                code = await self._written(prompt, turn)
                if code in seen:
                    break  # the model repeats an earlier answer
                seen.add(code)
                candidate = await self._tried(code)
            except Unfit as unfit:
                last = unfit
                self._note(turn, code or None, str(unfit))
                fault = Fault(code, str(unfit))
                continue
            if best is None or candidate.right > best.right:
                best = candidate
            problem = self._mistakes(candidate)
            self._note(turn, code, problem or "", candidate.right)
            if problem is None:
                break
            fault = Fault(code, problem)
        if best is None:
            message = (
                f"no answer of the model could be used as an eval, {len(self._rounds)} were tried; the last one: {last}"
            )
            raise RunFailed(FailureReason.EVAL_REFUSED, message, last.code)
        await self._save(best)

    async def _save(self, best: Candidate) -> None:
        self._tell(JobStage.SAVING_EVAL)
        await self._reporter.eval_written(best.code, best.judgements, self._rounds)

    async def _drafted(self, code: str) -> Candidate:
        """Checks code written by a person in the same way; its accuracy is measured, but not required."""
        self._tell(JobStage.VALIDATING_CODE)
        try:
            return await self._tried(code)
        except Unfit as unfit:
            self._note(0, code, str(unfit))
            raise RunFailed(FailureReason.EVAL_REFUSED, f"the code cannot be used as an eval: {unfit}", unfit.code) from None

    def _tell(self, stage: JobStage, **facts: Any) -> None:
        self._stage = stage
        self._reporter.job(stage, STAGE_PERCENT[stage], **{"detail": self._words, **facts})

    def _note(self, turn: int, code: str | None, problem: str, right: int | None = None) -> None:
        tested = len(self._training) if right is not None else None
        kept = clean(problem[:KEPT_PROBLEM_CHARS])
        self._rounds.append(Round(turn=turn, code=code and clean(code), problem=kept, right=right, tested=tested))
        if problem:
            self._tell(self._stage, round=self._rounds[-1])
        self._log("eval.round", turn=turn, right=right, problem=kept[:200])

    async def _written(self, prompt: Prompt, turn: int) -> str:
        self._tell(JobStage.CALLING_LLM)
        completion = await self._asked(prompt, turn)
        self._tell(JobStage.VALIDATING_CODE)
        extraction = await search(lambda text: extract_code(text, ENTRY), completion.text)
        if completion.finish is Finish.REFUSAL:
            raise Unfit("the model declined to answer")
        if extraction.code is None or not extraction.complete:
            raise Unfit("there is no whole Python code block in the answer")
        return extraction.code

    async def _asked(self, prompt: Prompt, turn: int) -> Completion:
        try:
            return await self._calls.ask(prompt, generation_key(turn))
        except BudgetExhausted as error:
            raise RunFailed(FailureReason.BUDGET_EXHAUSTED, str(error)) from None
        except PriceUnknown as error:
            raise RunFailed(FailureReason.PRICE_UNKNOWN, str(error)) from None
        except ProviderFailed as error:
            # A provider that refuses this call will refuse it again; one that failed may succeed in the next attempt.
            if error.refused:
                message = f"the provider refused the call: {error}"
                raise RunFailed(FailureReason.PROVIDER_ERROR, message, EXTERNAL) from None
            raise RunFailed(FailureReason.RUNNER_ERROR, f"the provider did not answer: {error}", EXTERNAL) from None
        except GatewayAway as error:
            raise RunFailed(FailureReason.RUNNER_ERROR, f"the gateway did not answer: {error}", EXTERNAL) from None

    async def _tried(self, code: str) -> Candidate:
        """Runs every check that an eval must pass."""
        if (problem := problem_of(code)) is not None:
            raise Unfit(problem)
        failures: list[Judgement] = []
        most = int(self._task.failing_share * len(self._subjects))

        def failed(judgement: Judgement) -> None:
            if judgement.failure is EvalFailure.INFRA:
                raise RunFailed(FailureReason.RUNNER_ERROR, f"the sandbox failed: {judgement.reason}")
            failures.append(judgement)
            timeouts = sum(judgement.failure is EvalFailure.TIMEOUT for judgement in failures)
            slow = judgement.failure is EvalFailure.TIMEOUT and too_many(timeouts, trial.judged, self._task.failing_share)
            if slow or len(failures) >= max(most + 1, SHOWN_FAILURES):
                raise self._failing(failures)

        trial = Trial(self._executor, code, self._task.limits, self._slots, failed=failed)
        if await trial.never_ends(self._subjects):
            seconds = f"{self._task.limits.seconds:g} s"
            raise Unfit(f"it never ends: a timeout after {seconds} on each of the shortest traces; look for a loop", TIMEOUT)
        judgements = await self._judged(trial, self._subjects, "first")
        if sum(judgement.failure is not None for judgement in judgements) > most:
            raise self._failing(failures)
        if len({judgement.passed for judgement in judgements if judgement.failure is None}) < 2:
            verdict = next((judgement.passed for judgement in judgements if judgement.failure is None), None)
            raise Unfit(f"it is constant: it says passed={verdict} of every trace, good or bad")
        failures.clear()
        trial.judged = 0
        again = await self._judged(trial, self._subjects[::-1], "second")
        for one, other in zip(judgements, reversed(again), strict=True):
            if differs(one, other):
                raise Unfit(difference(one, other))
        passed = {judgement.key: judgement.passed for judgement in judgements}
        right = sum(passed[example.subject.key] is (example.label is Label.POSITIVE) for example in self._training)
        return Candidate(code, judgements, right)

    async def _judged(self, trial: Trial, subjects: Sequence[Subject], salt: str) -> list[Judgement]:
        tested, again = 0, salt != "first"
        total = len(subjects)

        def progress(more: int) -> None:
            nonlocal tested
            tested += more
            parts = [self._words, "once more in another order, under other ids" if again else ""]
            if more or not again:
                detail = ", ".join(filter(None, parts))
                self._tell(JobStage.TESTING_ACCURACY, done=total if again else tested, total=total, detail=detail)

        progress(0)
        try:
            return await trial.judge_all(subjects, f"{self._task.seed} {salt}", progress)
        except Unsteady as unsteady:
            raise Unfit(str(unsteady)) from None

    def _failing(self, failures: Sequence[Judgement]) -> Unfit:
        kinds = Counter(judgement.failure for judgement in failures)
        code = TIMEOUT if kinds[EvalFailure.TIMEOUT] * 2 > len(failures) else ERROR
        if kinds[EvalFailure.CONTRACT] * 2 > len(failures):
            code = INVALID
        some = "\n".join(
            f"- {judgement.failure.value if judgement.failure else ''}: {judgement.reason}"
            for judgement in failures[:SHOWN_FAILURES]
        )
        share = f"{self._task.failing_share:.0%}"
        return Unfit(f"it gives no verdict on more than {share} of the traces, for example:\n{some}", code)

    def _mistakes(self, candidate: Candidate) -> str | None:
        """Describes its errors on training traces; None if there are few enough."""
        tested = len(self._training)
        if candidate.right >= self._task.target * tested:
            return None
        judgements = {judgement.key: judgement for judgement in candidate.judgements}
        wrong = [
            (example, _words(judgements[example.subject.key]))
            for example in self._training
            if judgements[example.subject.key].passed is not (example.label is Label.POSITIVE)
        ]
        return mistakes_text(wrong, candidate.right, tested)


def _words(judgement: Judgement) -> str:
    if judgement.failure is not None:
        return f"nothing ({judgement.failure.value}: {judgement.reason[:200]})"
    return f"{'good' if judgement.passed else 'bad'} ({judgement.reason[:200]})"
