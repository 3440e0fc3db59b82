"""Dispatcher, reconciler and intake over the fake engine and a manual clock, and the invariants that must hold after it all.

`boot` builds a fresh orchestrator on the same database and engine, as a restart does. A `CrashAt` makes the k-th database
write or engine call the last thing an orchestrator does.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session

from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.engines.engine import InstanceType
from orchestrator.engines.fake.container import FakeContainer
from orchestrator.fleet.agents import Agents
from orchestrator.fleet.wake_ups import WakeUps
from orchestrator.runs import item_queries, lifecycle
from orchestrator.runs import queries as run_queries
from orchestrator.runs.intake.authentication import Callers
from orchestrator.runs.intake.service import Claim, Intake
from orchestrator.runs.lifecycle import TERMINAL, CancelRequested, RunState, Status
from orchestrator.runs.live import queries as event_queries
from orchestrator.runs.reasons import Reason
from orchestrator.runs.scheduling.capacity import Capacity
from orchestrator.runs.scheduling.dispatcher import Dispatcher, Hold, LaunchPolicy
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.scheduling.reconciler import LeasePolicy, Reconciler
from orchestrator.runs.tables import Attempt, ContainerRun, Event
from orchestrator.runs.transitions import advance, state_of
from orchestrator.runs.warm_pool.hand_off import WarmHandOff
from orchestrator.runs.warm_pool.policy import PoolLimits, PoolSize
from orchestrator.runs.warm_pool.pool import Pool, PoolPolicy
from runner.contract.events import EventBatch
from runner.contract.run_spec import IdleReading, ItemKey
from tests.manual_clock import ManualClock
from tests.rows import a_model, a_run
from tests.service.runs.crashes import Crash, CrashAt, MortalDatabase, MortalEngine, WatchedEngine

GIB = 1 << 30
TYPES = {
    "basic": InstanceType("basic", 0.25, GIB, 4 * 10**9),
    "large": InstanceType("large", 4, 8 * GIB, 20 * 10**9),
}
LEASES = LeasePolicy(lease_s=30, suspect_s=30, start_timeout_s=120, interval_s=5, linger_s=15, stop_grace_s=0.05)


class RunWorld:
    def __init__(self, db: Database, clock: ManualClock, *, max_instances: int = 4) -> None:
        self.db = db
        self.clock = clock
        self.engine = WatchedEngine(clock)
        self.engine.behaviour = self.completes
        self.capacity: Capacity | None = Capacity(max_instances, 8.0, 16 * GIB)
        self.hold: Hold | None = None
        self.pool_sizes: dict[str, PoolSize] = {}
        self.acknowledged: list[tuple[str, ItemKey]] = []
        self.runs: list[str] = []
        self.boots = 0
        self.model_id = 0
        self.idle_reading: IdleReading | None = None
        """What runners that stand ready report."""

    # -- the orchestrator

    def boot(self, crash: CrashAt | None = None, *, holder: str = "o1") -> None:
        """A fresh orchestrator."""
        self.boots += 1
        self.crash = crash = crash or CrashAt()
        db: Any = MortalDatabase(self.db, crash)
        engine: Any = MortalEngine(self.engine, crash)
        rng = random.Random(self.boots)
        self.leadership = Leadership(db, self.clock, holder, 15)
        policy = LaunchPolicy(TYPES, "image", lambda: "http://door", 120, 4)
        self.pool = Pool(
            db,
            self.leadership,
            engine,
            self.clock,
            PoolPolicy(self.pool_sizes, TYPES, "image", lambda: "http://door", PoolLimits(120, 60)),
            capacity=lambda: self.capacity,
            look=lambda: None,
        )
        self.wake_ups = WakeUps()
        self.intake = Intake(db, self.clock, lease_s=30)
        self.hand_off = WarmHandOff(db, self.clock, self.intake, came_up=self.pool.came_up)
        self.dispatcher = Dispatcher(
            db,
            self.leadership,
            engine,
            self.clock,
            policy,
            self.pool,
            self.hand_off,
            ring=self.wake_ups.wake,
            capacity=lambda: self.capacity,
            hold=lambda: self.hold,
            rng=rng,
        )
        self.reconciler = Reconciler(
            db,
            self.leadership,
            engine,
            self.clock,
            LEASES,
            pool=self.pool,
            launching=self.dispatcher.launching,
            rng=rng,
            on_change=lambda: None,
        )
        self.agents = Agents(db, self.clock, TYPES, self.wake_ups, start_timeout_s=policy.start_timeout_s)

    async def round(self, seconds: float = 0.0) -> None:
        """What the loops do once, `seconds` later, up to the end of every launch."""
        self.clock.advance(seconds)
        if await self.leadership.hold():
            await self.reconciler.round()
            await self.dispatcher.round()
            await self.pool.fill()
        await self.launches()

    async def launches(self) -> None:
        under_way = (self.dispatcher.launching, self.pool.launching)
        results = await asyncio.gather(*(each.ended() for each in under_way), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def rounds(self, count: int, seconds: float = 5.0) -> None:
        for _ in range(count):
            await self.round(seconds)

    async def settle(self, *, seconds: float = 5.0, limit: int = 60) -> None:
        """Rounds until every run is over and every container gone."""
        for _ in range(limit):
            await self.round(seconds)
            await self.quiet()
            rows = [await self.row(run_id) for run_id in self.runs]
            if all(row.status in TERMINAL for row in rows) and not self.engine.containers:
                return
        raise AssertionError(f"not settled: {[(row.status, row.attempt, row.reason) for row in rows]}")

    async def quiet(self, timeout_s: float = 60) -> None:
        """Wait until the programs in the containers have done what they can do now."""

        def busy() -> bool:
            return any(c.state.value == "running" and not hasattr(c, "waits") for c in self.engine.containers.values())

        async with asyncio.timeout(timeout_s):
            while busy() and not self.crash.dead:
                await asyncio.sleep(0.002)

    # -- runs and rows

    async def new_run(self, **changed: Any) -> str:
        self.clock.advance(0.002)  # identifiers sort by milliseconds

        def insert(session: Session) -> str:
            if not self.model_id:
                model = a_model()
                session.add(model)
                session.flush()
                self.model_id = model.id or 0
            run = a_run(self.model_id, now=self.clock.now(), **changed)
            session.add(run)
            return run.id

        run_id = await self.db.write(insert)
        self.runs.append(run_id)
        return run_id

    async def cancel(self, run_id: str) -> None:
        now = self.clock.now()

        def work(session: Session) -> None:
            run = run_queries.lock(session, run_id)
            assert run is not None
            if run.status not in TERMINAL and run.desired != "cancel":
                advance(session, run, CancelRequested(now), now)

        await self.db.write(work)

    async def row(self, run_id: str) -> ContainerRun:
        run = await self.db.read(lambda s: run_queries.get(s, run_id))
        assert run is not None
        return run

    async def attempts(self, run_id: str) -> list[Attempt]:
        return list(await self.db.read(lambda s: run_queries.attempts(s, run_id)))

    async def status(self, run_id: str) -> tuple[str, str | None]:
        row = await self.row(run_id)
        return row.status, row.reason

    async def until(self, condition: Callable[[], bool], timeout_s: float = 60) -> None:
        async with asyncio.timeout(timeout_s):
            while not condition():
                await asyncio.sleep(0.002)

    def container(self, run_id: str, attempt: int = 1) -> FakeContainer:
        return self.engine.containers[f"benchyard-run-{run_id}-a{attempt}"]

    def token_of(self, name: str) -> str:
        return str(json.loads(self.engine.containers[name].boot_line)["token"])

    # -- what runs in the containers

    async def _persist(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """As the real runner does: again until it is answered."""
        while True:
            try:
                return await call()
            except (Crash, DatabaseUnavailable):
                await asyncio.sleep(0.003)

    async def completes(self, container: FakeContainer, *, items: int | None = None) -> int:
        """Claims, reports every open item and completes; with `items`, stops after so many and waits for its end."""
        token = json.loads(container.boot_line)["token"]
        try:
            attempt = await self._persist(lambda: Callers(self.db, self.clock).find(token))
            if attempt is None and json.loads(container.boot_line)["stand_ready"]:
                claim = await self.stands_ready(container, token)
                attempt = claim.attempt
            elif attempt is None:
                return 3
            else:
                claim = await self._persist(lambda: self.intake.claim(attempt, container.container_id))
            finished = {ItemKey(benchmark=b, problem_id=p, sample_index=i) for b, p, i in claim.finished}
            todo = [
                ItemKey(benchmark=part.name, problem_id=problem_id)
                for part in claim.run.task.benchmarks
                for problem_id in part.problem_ids
            ]
            seq = 0
            for key in [key for key in todo if key not in finished][:items]:
                await container.checkpoint()
                seq += 1
                progress = {"type": "progress", "seq": seq, "item": {**key.model_dump(), "outcome": "passed"}}
                ack = await self.post(attempt, progress)
                assert ack.ack_seq == seq
                self.acknowledged.append((attempt.run_id, key))
                if ack.desired == "cancel":
                    return 0
            if items is not None:
                container.waits = True  # type: ignore[attr-defined]
                await container.terminate.wait()
                return 143
            await self.post(attempt, {"type": "complete", "seq": seq + 1, "items": len(todo)})
            return 0
        except Exception as error:
            if type(error).__name__ in ("Superseded", "Conflict", "Unauthorized"):
                return 3
            raise

    async def stands_ready(self, container: FakeContainer, token: str) -> Claim:
        """Asks until it is given a run."""
        while True:
            await container.checkpoint()
            container.waits = True  # type: ignore[attr-defined]
            handed = await self._persist(lambda: self.hand_off.answer(token, container.container_id, 0, self.idle_reading))
            if handed is not None:
                del container.waits  # type: ignore[attr-defined]
                return handed.claim  # type: ignore[no-any-return]
            await asyncio.sleep(0.003)

    async def post(self, attempt: Attempt, *events: dict[str, Any]) -> Any:
        batch = EventBatch.model_validate({"attempt": attempt.number, "events": list(events)})
        return await self._persist(lambda: self.intake.events(attempt, batch))

    async def claims_and_waits(self, container: FakeContainer) -> int:
        return await self.completes(container, items=0)

    async def does_one_and_waits(self, container: FakeContainer) -> int:
        return await self.completes(container, items=1)

    @staticmethod
    async def never_claims(container: FakeContainer) -> int:
        container.waits = True  # type: ignore[attr-defined]
        await container.terminate.wait()
        return 143

    # -- what must hold

    async def check(self) -> None:
        """I1, I2, I3, I5 and I6, once things have settled."""
        rows = [await self.row(run_id) for run_id in self.runs]
        for run in rows:
            stored = await self.db.read(lambda s, r=run.id: item_queries.keys(s, r))
            acked = {(k.benchmark, k.problem_id, k.sample_index) for run_id, k in self.acknowledged if run_id == run.id}
            assert acked <= set(stored), "I1: an acknowledged result is lost"
            assert run.items_done == len(stored) == len(set(stored)), "I2: one accepted result per item"
            assert run.reason is None or run.reason in set(Reason), "I5"
            if run.status in ("failed", "cancelled"):
                assert run.error_message, "I5: no sentence"
            log = await self.db.read(lambda s, r=run.id: event_queries.transitions(s, r))
            assert replay(log) == comparable(state_of(run)), "I6: the log does not replay to the state"
        assert not self.engine.doubles, "I2: two live containers of one run"
        live = {f"benchyard-run-{run.id}-a{run.attempt}" for run in rows if run.status in ("starting", "running")}
        assert set(self.engine.containers) == live, "I3: containers are not exactly those of live runs"


def replay(log: list[Event] | Any) -> RunState:
    """The state that the transition log leads to, by legal edges only."""
    state = RunState()
    for row in log:
        assert row.data["from"] == state.status
        kind = getattr(lifecycle, row.data["event"])
        given = {name: _value(name, value) for name, value in row.data["given"].items()}
        state = lifecycle.apply(state, kind(**given))
        assert (row.data["status"], row.data["attempt"]) == (state.status, state.attempt)
    return comparable(state)


def comparable(state: RunState) -> RunState:
    """Without the columns that change outside of transitions."""
    return RunState(
        **{
            **vars(state),
            "status": Status(state.status),
            "reason": state.reason and str(state.reason),
            "stage": None,
            "lease_until": None,
            "start_deadline": None,
        }
    )


def _value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in ("at", "start_deadline", "lease_until", "started_at", "not_before"):
        return datetime.fromisoformat(value)
    if name == "backoff":
        hours, minutes, seconds = value.split(":")
        return timedelta(hours=int(hours), minutes=int(minutes), seconds=float(seconds))
    return Reason(value) if name == "reason" else value
