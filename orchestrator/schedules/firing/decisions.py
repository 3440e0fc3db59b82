"""The outcome of a due instant, as a pure function of the instant, the time, and the schedule's rules."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

LATE = timedelta(seconds=60)
"""A firing that is later than this counts as catching up."""


class FireOutcome(StrEnum):
    FIRED = "fired"  #: a run was created for it
    COALESCED = "coalesced"  #: late, and a newer instant runs instead
    SKIPPED_MISFIRE = "skipped_misfire"  #: too late to be worth a run
    SKIPPED_OVERLAP = "skipped_overlap"  #: the previous run of the schedule had not ended
    SKIPPED_PAUSED = "skipped_paused"  #: the schedule was paused
    REFUSED = "refused"  #: the run could not be created; the detail says why


class Misfire(StrEnum):
    NEWEST = "newest"  #: the newest instant runs, if it is late by no more than the grace period
    SKIP = "skip"  #: an instant that is late by more than a minute does not run


class Overlap(StrEnum):
    FORBID = "forbid"  #: no new run while one of this schedule is under way
    ALLOW = "allow"  #: runs may overlap


@dataclass(frozen=True)
class Rules:
    paused: bool = False
    misfire: Misfire = Misfire.NEWEST
    grace: timedelta = timedelta(hours=1)
    overlap: Overlap = Overlap.FORBID


def decide(instant: datetime, now: datetime, rules: Rules, *, newest: bool, under_way: bool) -> FireOutcome:
    """`newest`: no later instant is due. `under_way`: a run of this schedule has not ended."""
    age = now - instant
    if rules.paused:
        return FireOutcome.SKIPPED_PAUSED
    if age > rules.grace or (rules.misfire is Misfire.SKIP and age > LATE):
        return FireOutcome.SKIPPED_MISFIRE
    if not newest:
        return FireOutcome.COALESCED
    if under_way and rules.overlap is Overlap.FORBID:
        return FireOutcome.SKIPPED_OVERLAP
    return FireOutcome.FIRED


def sentence(outcome: FireOutcome, instant: datetime, now: datetime) -> str:
    """The reason for an outcome, for the history."""
    minutes = round((now - instant).total_seconds() / 60)
    return {
        FireOutcome.FIRED: "" if now - instant <= LATE else f"Fired {minutes} min late.",
        FireOutcome.COALESCED: f"{minutes} min late; a newer instant runs instead.",
        FireOutcome.SKIPPED_MISFIRE: f"{minutes} min late, more than the schedule allows; no run.",
        FireOutcome.SKIPPED_OVERLAP: "The schedule's run before this one had not ended; no run.",
        FireOutcome.SKIPPED_PAUSED: "The schedule was paused.",
        FireOutcome.REFUSED: "The run could not be made.",
    }[outcome]
