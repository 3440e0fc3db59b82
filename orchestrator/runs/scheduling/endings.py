"""Why an attempt must end, or has ended, from what the engine reports of its container. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from orchestrator.engines.engine import ContainerFacts, ContainerState
from orchestrator.runs.lifecycle import Status
from orchestrator.runs.reasons import Reason
from orchestrator.runs.tables import Attempt, ContainerRun
from runner.contract.run_spec import GUEST_KINDS

LAST_WORDS = "last_words"
EVICTED = "evicted"
"""Keys in an attempt's facts: what the engine last said about its live container, and whether the cluster took its place."""


@dataclass(frozen=True)
class LeasePolicy:
    lease_s: float
    suspect_s: float
    start_timeout_s: float
    interval_s: float
    linger_s: float = 15.0
    """How long a runner may take to exit after its run has ended."""
    stop_grace_s: float = 4.0
    max_wait_s: float = 3600.0
    """How long a container may wait for a machine."""
    pull_s: float = 600.0
    """How much longer a container may take to start if it is made of a user's image, which may have to be pulled."""


@dataclass(frozen=True)
class Ending:
    """Why an attempt ended."""

    reason: Reason
    message: str | None = None


def verdict(run: ContainerRun, attempt: Attempt, fact: ContainerFacts, policy: LeasePolicy, now: datetime) -> Ending | None:
    """Why this live container must be stopped now, or None."""
    if run.desired == "cancel":
        return Ending(Reason.CANCELLED_BY_USER)
    if run.started_at is not None and now > run.started_at + timedelta(seconds=run.deadline_s + run.waited_s):
        return Ending(Reason.DEADLINE, f"The run took longer than its deadline of {run.deadline_s} s and was stopped.")
    if run.status == Status.STARTING and (late := _late_start(run, attempt, fact, policy, now)) is not None:
        return late
    suspect = timedelta(seconds=policy.suspect_s)
    if run.status == Status.RUNNING and run.lease_until is not None and now > run.lease_until + suspect:
        seconds = policy.lease_s + policy.suspect_s
        words = "The container was paused." if fact.state is ContainerState.PAUSED else fact.detail
        return Ending(Reason.HEARTBEAT_LOST, _and(f"The runner reported nothing for {seconds:g} s and was killed.", words))
    return None


def _late_start(
    run: ContainerRun, attempt: Attempt, fact: ContainerFacts, policy: LeasePolicy, now: datetime
) -> Ending | None:
    """A container that waits for a machine is not late: the time to report counts from when it got one."""
    if fact.state is ContainerState.CREATED:
        return Ending(Reason.ENGINE_ERROR, "The container was created but never started.")
    if fact.boot_line_lost:
        return Ending(Reason.ENGINE_ERROR, fact.detail)
    if fact.image_missing:
        return Ending(Reason.IMAGE_MISSING, fact.detail)
    if fact.state is ContainerState.WAITING and fact.placed_at is None:
        if now <= attempt.dispatched_at + timedelta(seconds=policy.max_wait_s):
            return None
        words = f"The cluster found no machine for the container within {policy.max_wait_s:g} s."
        return Ending(Reason.UNSCHEDULABLE, _and(words, fact.detail))
    allowed_s = policy.start_timeout_s + (policy.pull_s if run.kind in GUEST_KINDS else 0)
    deadline = run.start_deadline
    if deadline is not None and fact.placed_at is not None:
        deadline = max(deadline, fact.placed_at + timedelta(seconds=allowed_s))
    if deadline is None or now <= deadline:
        return None
    if fact.state is ContainerState.WAITING:
        words = f"The container did not start within {allowed_s:g} s on {fact.machine or 'its machine'}."
        return Ending(Reason.START_TIMEOUT, _and(words, fact.detail))
    return Ending(Reason.START_TIMEOUT)


def exit_ending(attempt: Attempt, fact: ContainerFacts) -> Ending:
    """Why a container exited without completing its run."""
    if fact.oom_killed:
        return Ending(Reason.OUT_OF_MEMORY)
    if attempt.reason is not None:
        return Ending(Reason(attempt.reason), attempt.detail)
    if fact.evicted:
        return Ending(Reason.EVICTED, fact.detail)
    if fact.exit_code == 0:
        return Ending(Reason.PROTOCOL)
    if fact.exit_code in (137, 143):
        words = f"The container was killed from outside (exit {fact.exit_code})."
        return Ending(Reason.CONTAINER_GONE, _and(words, fact.detail))
    if fact.exit_code is None:
        return Ending(Reason.CONTAINER_GONE, fact.detail)
    words = f"The runner stopped with exit code {fact.exit_code}; its log says more."
    return Ending(Reason.RUNNER_ERROR, _and(words, fact.detail))


def gone_ending(attempt: Attempt) -> Ending:
    """Why a container does not exist any more. What the engine said of it before is the best explanation."""
    if attempt.launched_at is None and attempt.claimed_at is None:
        return Ending(Reason.ENGINE_ERROR, "The container was not started: the launch was interrupted or not answered.")
    words = attempt.facts.get(LAST_WORDS)
    reason = Reason.EVICTED if attempt.facts.get(EVICTED) else Reason.CONTAINER_GONE
    return Ending(reason, words if isinstance(words, str) else None)


def _and(sentence: str, words: str | None) -> str:
    return f"{sentence} {words}" if words else sentence
