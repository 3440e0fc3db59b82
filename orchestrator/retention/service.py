"""Deletes runs: one, those that match a filter, and those that are older than the setting allows.

Only ended runs go. What others rely on stays: baselines, pinned runs, members of a batch that has not ended. A deletion that
was accepted is carried out by `purge_round`, also after a restart.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import structlog
from sqlmodel import Session

from orchestrator.audit import queries as audit_queries
from orchestrator.audit.queries import ActorKind
from orchestrator.audit.tables import AuditEntry
from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.db.workspaces import acting_as
from orchestrator.errors import Conflict, NotFound
from orchestrator.retention import queries
from orchestrator.retention.queries import Amounts, Wanted
from orchestrator.retention.tables import DeletedRun
from orchestrator.runs.scheduling.leadership import Leadership
from orchestrator.runs.scheduling.lease_queries import LeadershipLost
from orchestrator.system.clock import Clock

log = structlog.get_logger()

AT_MOST = 1000
"""Runs that one request deletes; the answer says whether there are more."""
TOGETHER = 50
"""Runs that are hidden in one transaction."""
NAMED = 20
"""Protected runs that an answer names."""
ROUND_S = 5.0
RETAIN_S = 3600.0
BY_RETENTION = "retention"

RemoveArchive = Callable[[str, str], Awaitable[None]]
"""Removes the archive of a run from the object store, given the run's id and the file's name."""


@dataclass(frozen=True)
class Deletion:
    """What was deleted, or would be."""

    amounts: Amounts
    protected: int
    """Runs that match and stay."""
    reasons: dict[str, str]
    """Why, for some of them."""
    more: bool
    """There are further runs that match; ask again."""


class RunDeletion:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        leadership: Leadership,
        *,
        data_dir: Path,
        remove_archive: RemoveArchive | None,
        keep_days: int,
    ) -> None:
        self._db, self._clock, self._leadership = db, clock, leadership
        self._folders = (data_dir / "archives", data_dir / "artefacts")
        self._remove_archive = remove_archive
        self._keep_days = keep_days
        self._wanted = asyncio.Event()
        self._retained: float | None = None

    async def delete(self, run_id: str, *, by: str, dry_run: bool = False) -> Deletion:
        """Delete one run; `Conflict` says why it must stay."""
        known = await self._db.read(lambda s: queries.matching(s, Wanted(ids=(run_id,)), limit=1))
        if not known:
            raise NotFound(f"there is no run {run_id!r}; GET /api/container-runs lists those there are")
        found = await self._delete(known, by=by, dry_run=dry_run, rolling=False)
        if found.reasons:
            raise Conflict(f"run {run_id} cannot be deleted: {found.reasons[run_id]}")
        return found

    async def delete_matching(self, wanted: Wanted, *, by: str, dry_run: bool = False, after: str | None = None) -> Deletion:
        """Delete the runs that match and are not protected, at most `AT_MOST` of them, the oldest first."""
        total, reasons, protected, more = Amounts(), dict[str, str](), 0, True
        while more and total.runs < AT_MOST:
            ids = await self._db.read(lambda s, after=after: queries.matching(s, wanted, limit=TOGETHER + 1, after=after))  # type: ignore[misc]
            ids, more = ids[:TOGETHER], len(ids) > TOGETHER
            if not ids:
                break
            part = await self._delete(ids, by=by, dry_run=dry_run, rolling=wanted.ids is None)
            total, after = total + part.amounts, ids[-1]
            protected += part.protected
            reasons |= dict(list(part.reasons.items())[: NAMED - len(reasons)])
        return Deletion(total, protected, reasons, more)

    async def _delete(self, ids: list[str], *, by: str, dry_run: bool, rolling: bool) -> Deletion:
        now = self._clock.now()

        def work(session: Session) -> Deletion:
            reasons = queries.protections(session, ids, rolling=rolling)
            free = [run_id for run_id in ids if run_id not in reasons]
            amounts = queries.measure(session, free) if free else Amounts()
            if not dry_run:
                hidden = [run_id for run_id in free if queries.hide(session, run_id, by=by, now=now)]
                amounts = replace(amounts, runs=len(hidden))
            return Deletion(amounts, len(reasons), reasons, more=False)

        found = await (self._db.read if dry_run else self._db.write)(work)
        if not dry_run and found.amounts.runs:
            log.info("runs deleted", action="runs_deleted", runs=found.amounts.runs, by=by, bytes=found.amounts.bytes)
            self._wanted.set()
        return found

    async def keep_on(self) -> None:
        """Rounds for ever; no error ends them."""
        while True:
            busy = False
            try:
                if self._leadership.epoch is not None:
                    await self.retain()
                    busy = await self.purge_round()
            except (DatabaseUnavailable, LeadershipLost, OSError) as error:
                log.warning("deletion given up for now", action="deletion_failed", error=str(error))
            except Exception:
                log.exception("deletion failed", action="deletion_crashed")
            if not busy:
                await self._rest()

    async def _rest(self) -> None:
        self._wanted.clear()
        try:
            async with asyncio.timeout(ROUND_S):
                await self._wanted.wait()
        except TimeoutError:
            return

    async def retain(self) -> None:
        """Delete what is older than the setting allows, in every workspace; hourly."""
        monotonic = self._clock.monotonic()
        if not self._keep_days or (self._retained is not None and monotonic - self._retained < RETAIN_S):
            return
        self._retained = monotonic
        wanted = Wanted(ended_before=self._clock.now() - timedelta(days=self._keep_days))
        with acting_as(None):
            found = await self.delete_matching(wanted, by=BY_RETENTION)
            if found.amounts.runs:
                entry = AuditEntry(
                    at=self._clock.now(),
                    actor_kind=ActorKind.SYSTEM,
                    actor=BY_RETENTION,
                    action="runs deleted by retention",
                    detail=f"{found.amounts.runs} runs that ended more than {self._keep_days} days ago",
                )
                await self._db.write(lambda s: audit_queries.add(s, entry))
        if found.more:
            self._retained = None

    async def purge_round(self) -> bool:
        """Remove rows and files of some deleted runs; whether there may be more."""
        rows = await self._db.read(lambda s: queries.unpurged(s, TOGETHER))
        for row in rows:
            if not await self._purge(row):
                return False
        return len(rows) == TOGETHER

    async def _purge(self, row: DeletedRun) -> bool:
        """Files first: the row is what says where they are. False if that must wait."""
        archive = await self._db.read(lambda s: queries.archive_of(s, row.id))
        if archive is not None and archive.kind is not None and self._remove_archive is not None:
            try:
                await self._remove_archive(row.id, f"{archive.kind}.tar.gz")
            except Exception as error:  # the object store is away; the next round asks again
                log.warning("archive not removed", action="archive_kept", run_id=row.id, error=str(error))
                return False
        for folder in self._folders:
            await asyncio.to_thread(shutil.rmtree, folder / row.id, ignore_errors=True)
        while not await self._leadership.write(lambda s: queries.purge(s, row.id)):
            pass  # others write in between
        return True

    async def pin(self, run_id: str, *, pinned: bool) -> None:
        """Protect a run from deletion, or no longer."""
        now = self._clock.now()

        def work(session: Session) -> None:
            if not queries.matching(session, Wanted(ids=(run_id,)), limit=1):
                raise NotFound(f"there is no run {run_id!r}; GET /api/container-runs lists those there are")
            if pinned:
                queries.pin(session, run_id, now)
            else:
                queries.unpin(session, run_id)

        await self._db.write(work)
