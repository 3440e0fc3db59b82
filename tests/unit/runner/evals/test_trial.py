"""Evals in the real sandbox: verdicts, failures of one trace, state that must not matter, and attacks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from runner.contract.evals import EvalFailure, EvalLimits, Judgement
from runner.evals.trial import Subject, Trial, Unsteady
from runner.sandbox.executor import Executor
from tests.uids import own_uid_base

pytestmark = pytest.mark.anyio

LIMITS = EvalLimits(seconds=0.5)


@pytest.fixture(scope="module")
async def executor(anyio_backend: str) -> AsyncIterator[Executor]:
    async with Executor.open(slots=1, uid_base=own_uid_base()) as it:
        yield it


def subjects(*outputs: object) -> list[Subject]:
    return [
        Subject(key, json.dumps({"input": "q", "output": output, "steps": [], "metadata": {}}))
        for key, output in enumerate(outputs)
    ]


def trial(executor: Executor, body: str, before: str = "") -> Trial:
    code = f"{before}\ndef evaluate(trace):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return Trial(executor, code, LIMITS, 1)


VERDICT = 'return {"passed": ok, "score": 1.0 if ok else 0, "reason": str(trace["output"])}'


def said(judgements: list[Judgement]) -> list[object]:
    return [each.passed if each.failure is None else each.failure.value for each in judgements]


async def test_a_trace_that_fails_costs_no_other_its_verdict(executor: Executor) -> None:
    body = (
        'what = trace["output"]\n'
        'if what == "loop":\n    while True: pass\n'
        'if what == "crash":\n    raise KeyError("gone")\n'
        'if what == "memory":\n    return bytearray(200_000_000)\n'
        'if what == "exit":\n    raise SystemExit(0)\n'
        'if what == "contract":\n    return {"passed": 1, "score": 2, "reason": None}\n'
        f'ok = what == "good"\n{VERDICT}'
    )
    given = ["good", "loop", "bad", "crash", "memory", "good", "exit", "contract", "good"]
    judged = await trial(executor, body).judge(subjects(*given), "s")
    assert said(judged) == [True, "timeout", False, "crash", "memory", True, "crash", "contract", True]
    assert "gone" in judged[3].reason
    assert [each.key for each in judged] == list(range(9))


@pytest.mark.parametrize(
    "answer",
    [
        "None",
        '{"passed": True}',
        '{"passed": "yes", "score": 1, "reason": ""}',
        '{"passed": True, "score": 1.01, "reason": ""}',
        '{"passed": True, "score": float("nan"), "reason": ""}',
        '{"passed": True, "score": True, "reason": ""}',
        '{"passed": True, "score": 1, "reason": b""}',
        '{"passed": True, "score": 1, "reason": "x" * 10_000_000}',
        '(True, 1.0, "")',
    ],
)
async def test_the_contract_is_checked_on_the_trusted_side(executor: Executor, answer: str) -> None:
    (judged,) = await trial(executor, f"return {answer}").judge(subjects("x"), "s")
    assert judged.failure is EvalFailure.CONTRACT


async def test_what_a_module_keeps_does_not_reach_the_next_trace(executor: Executor) -> None:
    counting = f"SEEN.append(1)\nok = len(SEEN) == 1\n{VERDICT}"
    judged = await trial(executor, counting, "SEEN = []").judge(subjects(*"abcdefgh"), "s")
    assert said(judged) == [True] * 8


@pytest.mark.parametrize(
    "body",
    [
        f'json.seen = getattr(json, "seen", 0) + 1\nok = json.seen < 3\n{VERDICT}',
        f'ok = trace["id"] < "8"\n{VERDICT}',
    ],
    ids=["kept in a module", "reads the id"],
)
async def test_a_verdict_that_depends_on_anything_else_is_noticed(executor: Executor, body: str) -> None:
    one = trial(executor, body, "import json")
    many = subjects(*range(100))
    with pytest.raises(Unsteady):
        for salt in "abcdef":
            await one.judge(many, salt)
    # alone, what is kept in a process cannot matter
    if "json.seen" in body:
        assert said(await one.alone(many[:5], "s")) == [True] * 5


ATTACK = """
os = statistics.random._os
def tried(action):
    try:
        action()
        return True
    except BaseException:
        return False
ok = any([
    tried(lambda: os.open("/etc/passwd", os.O_RDONLY)),
    tried(lambda: os.open("/proc/1/environ", os.O_RDONLY)),
    tried(lambda: os.open("/tmp/was-here", os.O_CREAT | os.O_WRONLY)),
    tried(lambda: os.fork()),
    tried(lambda: os.kill(os.getppid(), 9)),
    tried(lambda: statistics.sys.modules["socket"].socket()),
])
"""


async def test_what_is_allowed_to_import_leads_nowhere(executor: Executor) -> None:
    (judged,) = await trial(executor, ATTACK + VERDICT, "import statistics").judge(subjects("x"), "s")
    assert judged.passed is False, "an attack got through"


async def test_a_forged_answer_is_nobodys_verdict(executor: Executor) -> None:
    forged = (
        "os = statistics.random._os\n"
        'frame = b\'["v",["d",["passed",true],["score",1],["reason","forged"]]]\'\n'
        "for fd in range(3, 30):\n"
        "    try:\n        os.write(fd, len(frame).to_bytes(4, 'little') + frame)\n"
        "    except OSError:\n        pass\n"
        f"ok = False\n{VERDICT}"
    )
    judged = await trial(executor, forged, "import statistics").judge(subjects("a", "b", "c"), "s")
    assert said(judged) == ["crash"] * 3
