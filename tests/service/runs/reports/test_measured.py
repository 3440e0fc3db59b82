"""A run in which no item counts is not a success, whatever its runner says."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.runs.reasons import Reason
from orchestrator.runs.reports.scores import counts, nothing_measured
from tests.service.runs.intake.test_service import progress, running
from tests.service.runs.simulated_scheduler import RunWorld

SENTENCE = "lab answered 400: Invalid model name passed in model=x"


def test_what_counts() -> None:
    assert counts({"passed": 0, "wrong_answer": 1, "provider_error": 99})
    assert counts({"refused": 1})
    assert not counts({"provider_error": 3, "infra_error": 2, "passed": 0})
    assert not counts({})


@pytest.mark.parametrize(
    ("details", "early", "reason", "words"),
    [
        pytest.param(
            [("provider_error", SENTENCE, 20)], None, Reason.PROVIDER_ERROR, ["20 provider_error", SENTENCE], id="all"
        ),
        pytest.param(
            [("provider_error", "other", 1), ("provider_error", SENTENCE, 9), ("infra_error", "disk", 5)],
            None,
            Reason.PROVIDER_ERROR,
            ["5 infra_error, 10 provider_error", SENTENCE],
            id="the most frequent sentence",
        ),
        pytest.param([("infra_error", "no disk", 3)], None, Reason.NOTHING_MEASURED, ["no disk"], id="our own machinery"),
        pytest.param(
            [], Reason.BUDGET_EXHAUSTED, Reason.BUDGET_EXHAUSTED, ["no item was finished", "too dear"], id="budget"
        ),
    ],
)
def test_why(details: list[tuple[str, str, int]], early: Reason | None, reason: Reason, words: list[str]) -> None:
    found, message = nothing_measured(details, early, "too dear")
    assert found is reason
    assert message.startswith("nothing was measured")
    assert all(word in message for word in words)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("outcomes", "end", "status", "reason"),
    [
        pytest.param(["provider_error", "provider_error"], None, "failed", "provider_error", id="provider"),
        pytest.param(["infra_error", "infra_error"], None, "failed", "nothing_measured", id="infrastructure"),
        pytest.param(["provider_error", "wrong_answer"], None, "completed", None, id="one counts"),
        pytest.param([], "budget_exhausted", "failed", "budget_exhausted", id="budget before the first"),
        pytest.param(["provider_error"], "budget_exhausted", "failed", "budget_exhausted", id="budget, none counts"),
        pytest.param(["passed"], "budget_exhausted", "completed", "budget_exhausted", id="budget, one counts"),
        pytest.param(["passed"], "price_unknown", "failed", "price_unknown", id="no price"),
    ],
)
async def test_the_end_of_a_run(
    world: RunWorld, outcomes: list[str], end: str | None, status: str, reason: str | None
) -> None:
    attempt = await running(world)
    events: list[dict[str, Any]] = [progress(n + 1, n, each, detail=SENTENCE) for n, each in enumerate(outcomes)]
    last = {"type": "complete", "items": 2} if end is None else {"type": "failed", "reason": end, "message": "too dear"}
    events.append({**last, "seq": len(events) + 1})
    ack = await world.post(attempt, *events)
    assert (await world.post(attempt, *events)).ack_seq == ack.ack_seq == len(events), "told again: the answer was lost"
    row = await world.row(attempt.run_id)
    assert (row.status, row.reason) == (status, reason)
    if status == "failed":
        assert (SENTENCE if end is None else "too dear") in (row.error_message or "")
    elif end is not None:
        assert row.error_message == "too dear", "whose budget it was is the gateway's to say"
    await world.settle()
    await world.check()


@pytest.mark.anyio
async def test_cancelled_stays_cancelled(world: RunWorld) -> None:
    attempt = await running(world)
    await world.cancel(attempt.run_id)
    events = [progress(1, 0, "provider_error"), progress(2, 1, "provider_error"), {"type": "complete", "seq": 3, "items": 2}]
    await world.post(attempt, *events)
    assert (await world.row(attempt.run_id)).status == "cancelled"
