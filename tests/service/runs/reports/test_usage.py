"""Usage over time: bounded, even, and no peak of memory is lost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.runs import queries as run_queries
from orchestrator.runs.intake.service import Intake
from orchestrator.runs.reports.machine_cost import MOST, Stored, merged, points
from runner.contract.events import EventBatch, LogEvent, UsageSample
from tests.manual_clock import ManualClock
from tests.rows import a_model, a_run, an_attempt


def sample(at_s: float, cpu_s: float = 0.0, memory: int = 1, throttled: float | None = None) -> UsageSample:
    return UsageSample(at_s=at_s, cpu_s=cpu_s, memory_bytes=memory, throttled_s=throttled)


def test_a_day_of_samples_stays_small_and_even_and_keeps_its_peak() -> None:
    kept: list[Stored] = []
    for second in range(0, 86_400, 30):
        kept = merged(kept, [sample(second, second / 2, memory=900 if second == 3000 else 10)])
    times = [float(each[0] or 0) for each in kept]
    assert len(kept) == MOST
    assert (times[0], times[-1]) == (0, 86_370)
    gaps = [after - before for before, after in pairwise(times)]
    assert max(gaps) <= 4 * 86_400 / MOST
    assert max(float(each[2] or 0) for each in kept) == 900
    assert all(point.vcpu == pytest.approx(0.5) for point in points(kept))


def test_what_comes_again_is_not_taken_again() -> None:
    first = merged([], [sample(2, 1), sample(1, 0.5)])
    assert [each[0] for each in first] == [1, 2]
    assert merged(first, [sample(1, 9), sample(2, 9)]) == first


def test_rates() -> None:
    kept = merged([], [sample(0, 0, throttled=0), sample(2, 1, memory=7, throttled=0.5), sample(4, 0.5)])
    first, second = points(kept)
    assert (first.at_s, first.vcpu, first.memory_bytes, first.throttled) == (2, 0.5, 7, 0.25)
    assert (second.vcpu, second.throttled) == (0, None)


@pytest.mark.anyio
async def test_samples_are_stored_with_their_attempt(database: Database, clock: ManualClock) -> None:
    def insert(session: Session) -> str:
        session.add(a_model())
        session.flush()
        run = a_run(status="running", attempt=1)
        session.add(run)
        session.flush()
        session.add(an_attempt(run.id))
        return run.id

    run_id = await database.write(insert)
    attempt = await database.read(lambda s: run_queries.attempt(s, run_id, 1))
    assert attempt is not None
    intake = Intake(database, clock, lease_s=30)
    for seq in (1, 2, 2):
        batch = EventBatch(attempt=1, events=[LogEvent(seq=seq, message="x")], usage=[sample(seq, seq, 50, 0.25)])
        await intake.events(attempt, batch)
    stored = await database.read(lambda s: run_queries.usage(s, run_id))
    assert stored == {1: [[1, 1, 50, 0.25], [2, 2, 50, 0.25]]}
