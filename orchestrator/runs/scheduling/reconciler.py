"""Makes rows and engine agree again, whatever happened in between.

Every round lists the containers first and reads the rows afterwards, so that every listed container has its row. Silence
proves nothing: if the engine does not answer, the round ends, and an attempt is lost only after the engine itself reported
that its container has ended or does not exist.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.engines.engine import ENDED, ContainerFacts, ContainerState, Engine
from orchestrator.fleet import queries as agent_queries
from orchestrator.runs import item_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.lifecycle import LIVE, TERMINAL, AttemptEnded, ClockSet, Status, backoff
from orchestrator.runs.live import queries as event_queries
from orchestrator.runs.reasons import Reason, sentence
from orchestrator.runs.reports.machine_cost import gib_s_after, last_reading
from orchestrator.runs.reports.scores import run_score
from orchestrator.runs.scheduling.clock_steps import ClockStep, ClockSteps
from orchestrator.runs.scheduling.endings import EVICTED, LAST_WORDS, Ending, LeasePolicy, exit_ending, gone_ending, verdict
from orchestrator.runs.scheduling.launches import LaunchesInFlight
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.scheduling.remote import REMOTE, last_report
from orchestrator.runs.tables import Attempt, ContainerRun
from orchestrator.runs.transitions import advance, put_back
from orchestrator.runs.warm_pool.pool import NAME as WARM
from orchestrator.runs.warm_pool.pool import Pool
from orchestrator.system.clock import Clock

log = structlog.get_logger()

LOG_TAIL_BYTES = 64 * 1024
AT_ONCE = 8
WORDS = 1000
"""How much of the engine's words about a container is kept."""


class Reconciler:
    def __init__(
        self,
        db: Database,
        leadership: Leadership,
        engine: Engine,
        clock: Clock,
        policy: LeasePolicy,
        *,
        pool: Pool,
        launching: LaunchesInFlight,
        rng: random.Random,
        on_change: Callable[[], None],
    ) -> None:
        self._db = db
        self._leadership = leadership
        self._engine = engine
        self._clock = clock
        self._policy = policy
        self._pool = pool
        self._launching = launching
        self._rng = rng
        self._on_change = on_change
        self._last_round: float | None = None
        self._steps = ClockSteps(clock)

    async def round(self) -> None:
        await self._follow_the_clock()
        await self._forgive_our_absence()
        containers = {fact.name: fact for fact in await self._engine.list()}
        now = self._clock.now()  # judge the state as of this listing, however long the judging takes
        ready = await self._pool.tend(containers, now)
        # In this order: a task that is claimed between the two reads must not look like an attempt that no live run owns.
        unremoved = {row.container_name: row for row in await self._db.read(run_queries.unremoved_attempts)}
        live = {attempt.container_name: (run, attempt) for run, attempt in await self._db.read(run_queries.live)}
        work: list[Callable[[], Coroutine[Any, Any, None]]] = [
            partial(self._judge, run, attempt, containers.get(name), now) for name, (run, attempt) in live.items()
        ]
        work += [
            partial(self._reap, fact, unremoved.get(name))
            for name, fact in containers.items()
            if name not in live and name not in self._launching and name not in ready
        ]
        gone = [row for name, row in unremoved.items() if name not in live and name not in containers]
        if gone:
            await self._mark_removed(gone)
        limit = asyncio.Semaphore(AT_ONCE)

        async def bounded(job: Callable[[], Coroutine[Any, Any, None]]) -> None:
            async with limit:
                await job()

        results = await asyncio.gather(*(bounded(job) for job in work), return_exceptions=True)
        self._last_round = self._clock.monotonic()
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _follow_the_clock(self) -> None:
        """Shift stored times after a step of the wall clock, which is not elapsed time."""
        step = self._steps.look()
        if step is None:
            return
        lease_until = step.now + timedelta(seconds=self._policy.lease_s)
        start_deadline = step.now + timedelta(seconds=self._policy.start_timeout_s)
        count = await self._leadership.write(lambda s: _move_along(s, step, lease_until, start_deadline))
        log.warning("the time of day was set", action="clock_step", by_s=step.by.total_seconds(), runs=count)

    async def _forgive_our_absence(self) -> None:
        """Renew every lease after a restart or stall of our own, when silence of the runners proves nothing."""
        last, now_s = self._last_round, self._clock.monotonic()
        if last is not None and now_s - last < 2 * self._policy.interval_s + 5:
            return
        now = self._clock.now()
        lease_until = now + timedelta(seconds=self._policy.lease_s)
        start_deadline = now + timedelta(seconds=min(self._policy.start_timeout_s, 30))
        count = await self._leadership.write(lambda s: run_queries.extend_leases(s, lease_until, start_deadline))
        log.info("leases extended", action="leases_extended", runs=count, boot=last is None)

    async def _judge(self, run: ContainerRun, attempt: Attempt, fact: ContainerFacts | None, now: datetime) -> None:
        """Compare one live run with what the engine reports of its container."""
        name = attempt.container_name
        if attempt.agent_id is not None:
            await self._judge_remote(run, attempt, now)
            return
        if name in self._launching and not (run.desired == "cancel" and await self._launching.give_up(name)):
            return
        if fact is None or fact.state is ContainerState.CREATED:
            fact = await self._engine.inspect(name)  # the list may be older than the launch, which has ended by now
        if fact is None:
            await self._end(run, attempt, None, gone_ending(attempt))
        elif not _belongs(fact, attempt):
            await self._end(run, attempt, None, Ending(Reason.NAME_TAKEN))
        elif fact.state in ENDED:
            await self._end(run, attempt, fact, exit_ending(attempt, fact))
        elif fact.boot_line_lost and attempt.launched_at is None:
            await self._launch_again(run, attempt)
        elif (ending := verdict(run, attempt, fact, self._policy, now)) is not None:
            graceful = run.desired == "cancel" and fact.state is ContainerState.RUNNING
            after = await self._silence(name, graceful=graceful)
            if after is None or after.state in ENDED or after.state is ContainerState.CREATED:
                await self._end(run, attempt, after, ending)
        else:
            await self._note(run, attempt, fact)

    async def _launch_again(self, run: ContainerRun, attempt: Attempt) -> None:
        """Remove a container whose launch was interrupted, and return its run to the queue: it lost nothing but time."""
        if await self._silence(attempt.container_name, graceful=False) is not None:
            return  # the next round looks again
        words = "The launch of its container was interrupted. It is launched again."
        if await self._leadership.write(lambda s: put_back(s, run.id, attempt.number, words, self._clock.now())):
            log.info("launch interrupted", action="launch_interrupted", run_id=run.id, attempt=attempt.number)
            self._on_change()

    async def _judge_remote(self, run: ContainerRun, attempt: Attempt, now: datetime) -> None:
        """Judge one live run on another machine by the reports of its agent and its runner. We cannot wait forever for the
        container to end there: after the usual silence, the attempt ends and its token becomes invalid."""
        fact = last_report(attempt)
        if fact is not None and fact.state in ENDED:
            said = attempt.facts[REMOTE]
            refused = said.get("refused") and attempt.claimed_at is None
            ending = Ending(Reason.ENGINE_ERROR, attempt.detail) if refused else exit_ending(attempt, fact)
            if said.get("gone"):
                ending = Ending(Reason.CONTAINER_GONE)
            await self._end(run, attempt, None, ending)
            return
        running = fact or ContainerFacts(attempt.container_name, "", ContainerState.RUNNING, None, None, None, now)
        ending_now = verdict(run, attempt, running, self._policy, now)
        heard = max(attempt.last_event_at or attempt.dispatched_at, attempt.dispatched_at)
        patient = now < heard + timedelta(seconds=self._policy.lease_s + self._policy.suspect_s)
        if ending_now is not None and not (ending_now.reason is Reason.CANCELLED_BY_USER and patient):
            await self._end(run, attempt, None, ending_now)

    async def _note(self, run: ContainerRun, attempt: Attempt, fact: ContainerFacts) -> None:
        """Keep what the engine says about a live container: what it waits for, or that the cluster is about to end it."""
        waits = fact.detail[:WORDS] if fact.detail and fact.state is ContainerState.WAITING else None
        last = fact.detail[:WORDS] if fact.detail and fact.state is not ContainerState.WAITING else None
        starting = run.status == Status.STARTING
        if (not starting or waits == run.waiting_for) and (last is None or last == attempt.facts.get(LAST_WORDS)):
            return
        now = self._clock.now()

        def write(session: Session) -> None:
            row = run_queries.lock(session, run.id)
            current = run_queries.lock_attempt(session, run.id, attempt.number)
            if row is None or current is None or row.attempt != attempt.number or row.status != run.status:
                return
            if starting and row.waiting_for != waits:
                row.waiting_for = waits
                session.add(row)
                told = {"waiting_for": waits}
                event_queries.append(session, "heartbeat", now, run_id=run.id, attempt=attempt.number, data=told)
            if last is not None:
                current.facts = {**current.facts, LAST_WORDS: last, EVICTED: fact.evicted}
                attempt.facts = current.facts
                session.add(current)

        await self._leadership.write(write)

    async def _silence(self, name: str, *, graceful: bool) -> ContainerFacts | None:
        """Stop the container and return its state afterwards."""
        if graceful:
            await self._engine.stop(name, grace_s=self._policy.stop_grace_s)
        else:
            await self._engine.kill(name)
        for _ in range(20):
            fact = await self._engine.inspect(name)
            if fact is None or fact.state in ENDED or fact.state is ContainerState.CREATED:
                return fact
            await asyncio.sleep(0.1)
        return fact

    async def _end(self, run: ContainerRun, attempt: Attempt, fact: ContainerFacts | None, ending: Ending) -> None:
        """Record the end of the attempt, then remove its container."""
        tail = await self._tail(fact)
        now = self._clock.now()
        jitter = self._rng.random()

        def work(session: Session) -> Reason | None:
            row = run_queries.lock(session, run.id)
            current = run_queries.lock_attempt(session, run.id, attempt.number)
            if row is None or current is None or row.attempt != attempt.number or row.status not in LIVE:
                return None  # it completed, or another round was faster
            # A run that was cancelled ends for that reason, however its container ended.
            reason, message = ending.reason, ending.message
            if row.desired == "cancel" and reason is not Reason.CANCELLED_BY_USER:
                reason, message = Reason.CANCELLED_BY_USER, None
            if message is None and current.detail:
                message = current.detail
            failures = 0 if row.items_done > row.items_at_start else row.attempts_without_progress + 1
            event = AttemptEnded(now, reason, message, row.items_done, backoff(failures, jitter))
            after = advance(session, row, event, now)
            if after.status in TERMINAL:
                row.score = run_score(row.kind, item_queries.both_verdicts(session, row.id), cut_short=True)
            current.ended_at, current.token_hash = now, None
            current.reason = reason.value
            current.detail = message or sentence(reason)
            _write_facts(session, current, fact, tail)
            session.add(current)
            return reason

        if (recorded := await self._leadership.write(work)) is not None:
            log.info(
                "attempt ended",
                action="attempt_ended",
                run_id=run.id,
                attempt=attempt.number,
                reason=recorded.value,
            )
            self._on_change()
        if fact is not None:
            await self._engine.remove(fact.name)
        await self._mark_removed([attempt])

    async def _reap(self, fact: ContainerFacts, attempt: Attempt | None) -> None:
        """Remove a container that no live run owns, after recording its exit state and log."""
        if fact.state not in ENDED and attempt is not None and await self._may_linger(attempt):
            return
        if fact.state not in ENDED and fact.state is not ContainerState.CREATED:
            after = await self._silence(fact.name, graceful=False)
            if after is None:
                return
            fact = after
        tail = await self._tail(fact)
        if attempt is not None:
            key = (attempt.run_id, attempt.number)
            now = self._clock.now()

            def record(session: Session) -> None:
                row = run_queries.lock_attempt(session, *key)
                if row is not None:
                    row.ended_at, row.token_hash = row.ended_at or now, None
                    _write_facts(session, row, fact, tail)
                    session.add(row)

            await self._leadership.write(record)
        else:
            log.warning("orphan removed", action="orphan_removed", container=fact.name, run_id=fact.run_id)
        await self._engine.remove(fact.name)
        if attempt is not None:
            await self._mark_removed([attempt])

    async def _may_linger(self, attempt: Attempt) -> bool:
        """Whether the run has just ended and its runner may still be exiting."""
        run = await self._db.read(lambda s: run_queries.get(s, attempt.run_id))
        ended_at = None if run is None or run.attempt != attempt.number else run.completed_at or run.waiting_since
        if ended_at is None:
            return False
        return self._clock.now() < ended_at + timedelta(seconds=self._policy.linger_s)

    async def _mark_removed(self, rows: list[Attempt]) -> None:
        keys = [(row.run_id, row.number) for row in rows]
        now = self._clock.now()

        def work(session: Session) -> None:
            for key in keys:
                row = run_queries.lock_attempt(session, *key)
                if row is not None and row.removed_at is None:
                    row.removed_at, row.token_hash = now, None
                    row.ended_at = row.ended_at or now
                    session.add(row)

        await self._leadership.write(work)

    async def _tail(self, fact: ContainerFacts | None) -> str:
        if fact is None:
            return ""
        raw = await self._engine.logs(fact.name, tail_bytes=LOG_TAIL_BYTES)
        return raw.decode("utf-8", "replace").replace("\x00", "")


def _belongs(fact: ContainerFacts, attempt: Attempt) -> bool:
    """Whether a container is the attempt's. That of a warm runner is labelled with its pool id, which is in its name."""
    if attempt.container_name.startswith(WARM):
        return f"{WARM}{fact.run_id}" == attempt.container_name
    return (fact.run_id, fact.attempt) == (attempt.run_id, attempt.number)


def _move_along(session: Session, step: ClockStep, lease_until: datetime, start_deadline: datetime) -> int:
    """Shift the times of everything that has not ended. Leases and start deadlines are renewed."""
    unfinished = run_queries.unfinished(session)
    for run in unfinished:
        times = ClockSet(
            at=step.now,
            started_at=step.moved(run.started_at),
            not_before=step.moved(run.not_before),
            start_deadline=None if run.start_deadline is None else start_deadline,
            lease_until=None if run.lease_until is None else lease_until,
            waiting_since=step.moved(run.waiting_since),
        )
        advance(session, run, times, step.now)
    for _, attempt in run_queries.live(session):
        attempt.dispatched_at = step.moved(attempt.dispatched_at) or attempt.dispatched_at
        attempt.launched_at, attempt.claimed_at = step.moved(attempt.launched_at), step.moved(attempt.claimed_at)
        attempt.last_event_at = step.moved(attempt.last_event_at)
        session.add(attempt)
    for agent in agent_queries.every(session):
        agent.seen_at = step.moved(agent.seen_at) or agent.seen_at
        session.add(agent)
    return len(unfinished)


def _write_facts(session: Session, row: Attempt, fact: ContainerFacts | None, tail: str) -> None:
    if fact is None:
        return
    began = row.claimed_at if row.facts.get("stood_ready") else fact.started_at
    last = last_reading(tail)
    if began is not None and fact.finished_at is not None and "finished_at" not in row.facts:
        samples = run_queries.usage(session, row.run_id).get(row.number, [])
        row.gib_s += gib_s_after(samples, last.lived_s if last else (fact.finished_at - began).total_seconds())
    row.vcpu_s = max(row.vcpu_s, last.vcpu_s if last else 0.0)
    row.exit_code, row.oom_killed = fact.exit_code, fact.oom_killed
    row.log_tail = tail
    row.container_id = row.container_id or fact.container_id
    times = {"started_at": fact.started_at, "finished_at": fact.finished_at}
    row.facts = {**row.facts, **{key: value.isoformat() for key, value in times.items() if value is not None}}
    if fact.image_id and not row.facts.get("image_id"):  # where only the engine knows it
        row.facts = {**row.facts, "image_id": fact.image_id}
