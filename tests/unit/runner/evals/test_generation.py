"""Having an eval written, with a scripted model and the real sandbox: repairs, refusals with their codes, what is kept."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from runner.contract.evals import EvalLimits, EvalTask, Judgement, Label, Round
from runner.contract.events import FailureReason
from runner.errors import BudgetExhausted, ProviderFailed, RunFailed
from runner.evals.generation import Generation
from runner.evals.prompt import Training
from runner.evals.trial import Subject
from runner.llm.calls import Calls
from runner.llm.client import Completion, Finish, Prompt
from runner.log import Log
from runner.sandbox.executor import Executor
from tests.uids import own_uid_base

pytestmark = pytest.mark.anyio

EXAMPLES = [("good", f"fine {n}") for n in range(6)] + [("bad", f"awful {n}") for n in range(6)]
SECRET = "held out: fine"


class Model:
    """Says one thing after the other, the last one again and again; an error is raised."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers, self.prompts, self.keys = answers, list[Prompt](), list[str]()

    async def complete(self, prompt: Prompt, call_key: str) -> Completion:
        answer = self.answers[min(len(self.prompts), len(self.answers) - 1)]
        self.prompts.append(prompt)
        self.keys.append(call_key)
        if isinstance(answer, Exception):
            raise answer
        return Completion(answer, finish=Finish.STOP)

    async def close(self) -> None:
        """Nothing to close."""


class Told:
    """What would have gone to the orchestrator."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.code: str | None = None
        self.judgements: list[Judgement] = []
        self.rounds: list[Round] = []

    def job(self, stage: Any, percent: int, **_: Any) -> None:
        self.stages.append(f"{stage} {percent}")

    async def eval_written(self, code: str, judgements: list[Judgement], rounds: list[Round]) -> None:
        self.code, self.judgements, self.rounds = code, judgements, rounds


def subject(key: int, output: str) -> Subject:
    return Subject(key, json.dumps({"input": "q", "output": output, "steps": [], "metadata": {}}))


@pytest.fixture(scope="module")
async def executor(anyio_backend: str) -> AsyncIterator[Executor]:
    async with Executor.open(slots=1, uid_base=own_uid_base()) as it:
        yield it


Generate = Callable[..., Any]


@pytest.fixture
def generate(executor: Executor) -> Generate:
    async def run(*answers: str | Exception, **task: Any) -> tuple[Model, Told]:
        model, told = Model(*answers), Told()
        training = [
            Training(subject(key, output), Label.POSITIVE if label == "good" else Label.NEGATIVE)
            for key, (label, output) in enumerate(EXAMPLES)
        ]
        others = [subject(100, SECRET), subject(101, "held out: awful")]
        generation = Generation(
            EvalTask(criterion="It is fine.", limits=EvalLimits(seconds=0.3), **task),
            training,
            others,
            calls=Calls(model, 1, Log()),
            executor=executor,
            slots=1,
            reporter=told,  # type: ignore[arg-type]
            log=Log(),
        )
        try:
            await generation.run()
        except RunFailed as failure:
            failure.model, failure.told = model, told  # type: ignore[attr-defined]
            raise
        return model, told

    return run


def program(ok: str, before: str = "") -> str:
    verdict = 'return {"passed": bool(ok), "score": 1.0 if ok else 0.0, "reason": "so"}'
    return f'```python\n{before}\ndef evaluate(trace):\n    said = trace["output"]\n    ok = {ok}\n    {verdict}\n```'


GOOD = program('"fine" in said')
HALF = program('said in ("fine 1", "fine 2", "fine 3")')


async def test_a_good_answer_is_kept_at_once(generate: Generate) -> None:
    model, told = await generate(GOOD)
    assert len(model.prompts) == 1
    assert told.code is not None
    assert {each.key: each.passed for each in told.judgements}[100] is True
    assert len(told.judgements) == 14
    assert SECRET not in model.prompts[0].text
    assert list(dict.fromkeys(told.stages)) == [
        "calling_llm 20",
        "validating_code 60",
        "testing_accuracy 70",
        "saving_eval 90",
    ]


async def test_mistakes_on_training_traces_go_back(generate: Generate) -> None:
    model, told = await generate("no code", HALF, GOOD)
    assert [bool(each.problem) for each in told.rounds] == [True, True, False]
    assert "no whole Python code block" in model.prompts[1].text
    assert "9 of 12" in model.prompts[2].text
    assert "people say good, it says bad" in model.prompts[2].text
    assert all(SECRET not in prompt.text for prompt in model.prompts)
    assert len(set(model.keys)) == 3
    assert "fine" in (told.code or "")


async def test_the_best_is_kept_and_three_repairs_are_all(generate: Generate) -> None:
    worse = [program(f'said == "fine {n}"') for n in range(4)]
    model, told = await generate(HALF, *worse)
    assert len(model.prompts) == 4
    assert "fine 3" in (told.code or "")
    assert max(each.right or 0 for each in told.rounds) == 9


async def test_who_repeats_itself_is_not_asked_for_ever(generate: Generate) -> None:
    model, _ = await generate(HALF)
    assert len(model.prompts) == 2


REFUSED: dict[str, tuple[list[str], str, str]] = {
    "syntax": (["```python\ndef evaluate(trace)\n    pass\n```"], "INVALID_CODE", "not valid Python"),
    "import": ([program("True", "import os")], "INVALID_CODE", "imports os"),
    "constant": ([program("True"), program("False")], "INVALID_CODE", "constant"),
    "ids": ([program('trace["id"] < "8"')], "INVALID_CODE", "ids"),
    "state": (
        [program("not setattr(json, 'n', getattr(json, 'n', 0) + 1) and json.n % 2", "import json")],
        "INVALID_CODE",
        "keep",
    ),
    "slow": ([program("all(True for _ in iter(int, 1))")], "EXECUTION_TIMEOUT", "timeout"),
    "crash": ([program('{"fine 0": True}[said]')], "EXECUTION_ERROR", "KeyError"),
    "contract": (["```python\ndef evaluate(trace):\n    return 1.0\n```"], "INVALID_CODE", "must return a dict"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_is_unfit_is_refused_with_the_reason(generate: Generate, name: str) -> None:
    answers, code, words = REFUSED[name]
    with pytest.raises(RunFailed) as refused:
        await generate(*answers)
    assert (refused.value.reason, refused.value.code) == (FailureReason.EVAL_REFUSED, code)
    assert words in str(refused.value)
    assert refused.value.told.code is None  # type: ignore[attr-defined]
    assert words in refused.value.model.prompts[-1].text  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("error", "reason", "code"),
    [
        (ProviderFailed("no such model", 404), FailureReason.PROVIDER_ERROR, "EXTERNAL_API_ERROR"),
        (ProviderFailed("top_k is not supported", 400), FailureReason.PROVIDER_ERROR, "EXTERNAL_API_ERROR"),
        (ProviderFailed("too large", 413), FailureReason.PROVIDER_ERROR, "EXTERNAL_API_ERROR"),
        (ProviderFailed("unprocessable", 422), FailureReason.PROVIDER_ERROR, "EXTERNAL_API_ERROR"),
        (ProviderFailed("overloaded", 529), FailureReason.RUNNER_ERROR, "EXTERNAL_API_ERROR"),
        (ProviderFailed("slow down", 429), FailureReason.RUNNER_ERROR, "EXTERNAL_API_ERROR"),
        (ProviderFailed("try again", 409), FailureReason.RUNNER_ERROR, "EXTERNAL_API_ERROR"),
        (ProviderFailed("no answer at all"), FailureReason.RUNNER_ERROR, "EXTERNAL_API_ERROR"),
        (BudgetExhausted("nothing left"), FailureReason.BUDGET_EXHAUSTED, None),
    ],
)
async def test_a_model_that_does_not_answer(
    generate: Generate, error: Exception, reason: FailureReason, code: str | None
) -> None:
    with pytest.raises(RunFailed) as failed:
        await generate(error)
    assert (failed.value.reason, failed.value.code) == (reason, code)
    assert str(error) in str(failed.value), "the provider's own words"
