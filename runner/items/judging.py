"""Has a model judge the answers of a benchmark: asks it through the gateway, reads its verdicts, takes the majority."""

import asyncio
from dataclasses import dataclass

from runner.benchmarks.defined import DefinedTask
from runner.contract.events import Judgement, Outcome
from runner.contract.rules.model_judge import ModelJudge
from runner.contract.run_spec import ItemKey, judge_key
from runner.errors import ProviderFailed
from runner.grading.verdict import Verdict
from runner.items.asking import Asker
from runner.items.call_facts import call_facts
from runner.llm.client import Completion, Finish, Prompt
from runner.reporting.truncation import ANSWER_CHARS, cut, excerpt
from runner.rules.model_judging import FRAME_VERSION, Reading, judge_prompt, majority, read_verdict

SHOWN_CHARS = 500
UNREADABLE = {
    Finish.REFUSAL: "the judge declined to grade the answer",
    Finish.LENGTH: "the judge reached its token limit before its verdict",
}


@dataclass(frozen=True)
class JudgedByModel:
    verdict: Verdict
    judgements: list[Judgement]
    prompt: str


class Judging:
    """The judge of one benchmark."""

    def __init__(self, judge: ModelJudge, asker: Asker) -> None:
        self._judge, self._asker = judge, asker

    async def verdict(self, key: ItemKey, task: DefinedTask, answer: str) -> JudgedByModel:
        """Raises a `CallError` unless it is the judge's provider that failed; that is the item's outcome, since the answer
        has been paid for and should be kept."""
        system, user = judge_prompt(self._judge, task.judge_question(), answer)
        prompt = Prompt(system, user, FRAME_VERSION)
        keys = [judge_key(key.benchmark, key.problem_id, key.sample_index, number) for number in range(self._judge.samples)]
        replies = await asyncio.gather(*(self._asker.ask(prompt, call) for call in keys), return_exceptions=True)
        errors = [reply for reply in replies if isinstance(reply, BaseException)]
        for error in errors:
            if not isinstance(error, ProviderFailed):
                raise error
        judgements = [
            self._judgement(reply, call) for call, reply in zip(keys, replies, strict=True) if isinstance(reply, Completion)
        ]
        failure = str(errors[0]) if errors else ""
        return JudgedByModel(self._decided(judgements, failure), judgements, cut(prompt.text, ANSWER_CHARS))

    def _judgement(self, reply: Completion, call: str) -> Judgement:
        trouble = UNREADABLE.get(reply.finish)
        reading = Reading(None, "", trouble) if trouble else read_verdict(self._judge, reply.text)
        return Judgement(
            **call_facts(reply, call).model_dump(),
            model=self._judge.model,
            text=cut(reply.text, ANSWER_CHARS),
            worth=reading.worth,
            trouble=reading.trouble,
        )

    def _decided(self, judgements: list[Judgement], failure: str) -> Verdict:
        worths = [judgement.worth for judgement in judgements]
        passed = majority(self._judge, worths)
        if passed is None:
            if failure:
                return Verdict(Outcome.PROVIDER_ERROR, excerpt(f"the judge {self._judge.model} did not answer: {failure}"))
            trouble = next((judgement.trouble for judgement in judgements if judgement.trouble), "no majority")
            return Verdict(Outcome.INFRA_ERROR, f"no verdict of the judge {self._judge.model}: {trouble}")
        votes = [self._judge.passes(worth) for worth in worths if worth is not None]
        reasons = next(
            judgement.text
            for judgement in judgements
            if judgement.worth is not None and self._judge.passes(judgement.worth) is passed
        )
        share = f"{votes.count(passed)} of {self._judge.samples} times: " if self._judge.samples > 1 else ""
        detail = f"{self._judge.model} says {'right' if passed else 'wrong'}, {share}{reasons[-SHOWN_CHARS:]}"
        outcome = Outcome.PASSED if passed else Outcome.WRONG_ANSWER
        readable = [worth for worth in worths if worth is not None]
        score = sum(readable) / len(readable) if self._judge.partial else None
        return Verdict(outcome, detail, self._judge.samples, votes.count(True), score=score)
