"""Decides at every start whether this is the same installation as before or a copy, such as a restored backup.

A copy is quiet. It has its own instance name and owner, so that it touches nothing of the original on any engine; it fires
no schedules, delivers nothing, and leaves the original's open runs alone. It does run what people start on it. It remains a
copy until somebody declares it the original (`adopt`).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog
from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.installation import queries
from orchestrator.installation.identity import (
    Location,
    directory_location,
    is_run_elsewhere,
    own_name,
    renew_name,
    server_location,
)
from orchestrator.installation.queries import COPY_OF, HOME, INSTANCE, OWNER
from orchestrator.startup import CannotStart
from orchestrator.system.clock import Clock

log = structlog.get_logger()


class CannotSettle(CannotStart):
    """The installation must not start, or be adopted, in this state."""


@dataclass(frozen=True)
class Original:
    """The installation that a copy was made from."""

    instance: str
    owner: str
    since: str
    """When the copy was first started."""


@dataclass(frozen=True)
class Installation:
    instance: str
    """Value of the label `benchyard.instance`."""
    owner: str
    """Value of the label `benchyard.owner`; no other installation has it."""
    place: Location
    name: str
    """The name of this orchestrator among those that share the database."""
    copy_of: Original | None = None

    @property
    def is_quiet(self) -> bool:
        return self.copy_of is not None

    @property
    def notice(self) -> str | None:
        """What people should know about a copy."""
        if self.copy_of is None:
            return None
        return (
            f"This is a copy of the installation {self.copy_of.instance}: schedules, webhooks and the original's runs are "
            "held; runs that you start here are its own. If it is to replace the original, stop that one for good, then: "
            "benchyard adopt"
        )


@dataclass(frozen=True)
class Standing:
    """What the database says about the installation, and whether it is still at its recorded location."""

    facts: dict[str, str]
    place: Location
    name: str
    is_elsewhere: bool
    """The database came from another location and has not been started here yet."""


async def look(db: Database, data_dir: Path, machine: str) -> Standing:
    """Changes nothing in the database."""
    name = own_name(data_dir)
    facts = await db.read(queries.facts)
    location = await _location(db, data_dir, machine)
    if (home := facts.get(HOME)) is not None:
        return Standing(facts, location, name, not location.is_same(Location.from_text(home)))
    # An older version recorded no location. On SQLite only one orchestrator can lead, so the last lease holder tells.
    lease = await db.read(queries.lease)
    return Standing(facts, location, name, lease is not None and db.dialect == "sqlite" and lease.holder != name)


async def settle(
    db: Database,
    data_dir: Path,
    clock: Clock,
    *,
    machine: str,
    wanted_name: str | None = None,
    as_copy: bool = False,
    new_id: Callable[[], str] = lambda: secrets.token_hex(8),
) -> Installation:
    """Determine and record which installation this is."""
    standing = await look(db, data_dir, machine)
    already = COPY_OF in standing.facts and not standing.is_elsewhere
    if standing.is_elsewhere or (as_copy and not already):
        await _become_copy(db, data_dir, clock, standing, wanted_name, machine, new_id)
        standing = await look(db, data_dir, machine)
    proposals = {
        INSTANCE: wanted_name or f"by-{standing.name}",
        OWNER: new_id(),
        HOME: standing.place.as_text(),
    }
    facts = await db.write(lambda session: queries.propose(session, proposals))
    if standing.place.machine and not Location.from_text(facts[HOME]).machine:
        await db.write(lambda session: queries.store(session, {HOME: standing.place.as_text()}))
    stored = json.loads(facts[COPY_OF]) if COPY_OF in facts else None
    installation = Installation(
        instance=facts[INSTANCE],
        owner=facts[OWNER],
        place=standing.place,
        name=standing.name,
        copy_of=Original(**stored) if stored else None,
    )
    if is_run_elsewhere(installation.owner, installation.place):
        raise CannotSettle(
            "another process on this machine runs this installation from another location; stop it, or start this one "
            "as a copy: benchyard up --as-copy"
        )
    if wanted_name and wanted_name != installation.instance and not installation.is_quiet:
        log.warning(
            "BENCHYARD_INSTANCE is not used: the database has a name already",
            action="instance_kept",
            wanted=wanted_name,
            instance=installation.instance,
        )
    return installation


async def adopt(db: Database, data_dir: Path, clock: Clock, machine: str) -> Original:
    """Make this the original: it takes over the name, the owner and the open runs."""
    standing = await look(db, data_dir, machine)
    original = original_of(standing)
    if original is None:
        raise CannotSettle("this is not a copy: there is nothing to adopt")
    lease = await db.read(queries.lease)
    if not standing.is_elsewhere and lease is not None and lease.until > clock.now() and lease.holder != standing.name:
        raise CannotSettle("another orchestrator is using this database; stop all of them first")
    if is_run_elsewhere(original.owner, standing.place):
        raise CannotSettle(f"the original ({original.instance}) is running on this machine; stop it for good, then adopt")

    def write(session: Session) -> None:
        values: dict[str, str | None] = {INSTANCE: original.instance, HOME: standing.place.as_text(), COPY_OF: None}
        if original.owner:
            values[OWNER] = original.owner
        queries.store(session, values)
        queries.release_inherited(session)

    await db.write(write)
    return original


def original_of(standing: Standing) -> Original | None:
    """What a copy, started or not, was copied from."""
    facts = standing.facts
    if COPY_OF in facts:
        return Original(**json.loads(facts[COPY_OF]))
    if standing.is_elsewhere:
        return Original(facts.get(INSTANCE, ""), facts.get(OWNER, ""), "")
    return None


async def _become_copy(
    db: Database,
    data_dir: Path,
    clock: Clock,
    standing: Standing,
    wanted_name: str | None,
    machine: str,
    new_id: Callable[[], str],
) -> None:
    now = clock.now()
    lease = await db.read(queries.lease)
    if not standing.is_elsewhere and lease is not None and lease.until > now and lease.holder != standing.name:
        raise CannotSettle(
            "another orchestrator is using this database: --as-copy is for a restored copy in a database of its own"
        )
    facts = standing.facts
    # A copied data directory includes the original's identifier, under which leases and claims are held.
    renew_name(data_dir)
    location = await _location(db, data_dir, machine)
    before = json.loads(facts[COPY_OF]) if COPY_OF in facts else None
    original = before or {
        "instance": facts.get(INSTANCE, ""),
        "owner": facts.get(OWNER, ""),
        "since": now.isoformat(timespec="seconds"),
    }
    owner = new_id()
    instance = wanted_name if wanted_name not in (None, facts.get(INSTANCE)) else f"copy-{owner[:8]}"

    def write(session: Session) -> int | None:
        queries.lock_lease(session)
        if queries.facts(session) != facts:
            return None  # another orchestrator of this database was faster
        values = {INSTANCE: instance, OWNER: owner, HOME: location.as_text(), COPY_OF: json.dumps(original)}
        queries.store(session, values)
        return queries.hold_inherited(session, now)

    runs_held = await db.write(write)
    log.warning(
        "this is a copy: schedules and the original's runs are held",
        action="copy",
        original=original["instance"],
        instance=instance,
        runs_held=runs_held,
    )


async def _location(db: Database, data_dir: Path, machine: str) -> Location:
    if db.dialect == "sqlite":
        return directory_location(data_dir, machine)
    return server_location(*await db.read(queries.server_identity))
