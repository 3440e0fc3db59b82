"""Deletes runs: single ones, those that match a filter, and those older than the configured age.

Only ended runs are deleted. Runs that others rely on stay: baselines, pinned runs, members of a batch that has not ended.
`purge_round` carries out accepted deletions, also after a restart.
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
from orchestrator.retention.queries import Amounts, DeletionFilter
from orchestrator.retention.tables import DeletedRun
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.scheduling.leading.lease_queries import LeadershipLost
from orchestrator.system.clock import Clock

log = structlog.get_logger()

AT_MOST = 1000
"""Maximum number of runs per request; the answer says whether there are more."""
TOGETHER = 50
"""Runs hidden per transaction."""
NAMED = 20
"""Maximum number of protected runs named in an answer."""
ROUND_S = 5.0
RETAIN_S = 3600.0
BY_RETENTION = "retention"

RemoveArchive = Callable[[str, str], Awaitable[None]]
"""Removes a run's archive from the object store, given the run's id and the file name."""


@dataclass(frozen=True)
class Deletion:
    """What was deleted, or would be."""

    amounts: Amounts
    protected: int
    """Number of matching runs that stay."""
    reasons: dict[str, str]
    """The reasons for some of them."""
    more: bool
    """More runs match; send the request again."""


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
        """Deletes one run; raises `Conflict` with the reason if it must stay."""
        ids = await self._db.read(lambda s: queries.matching(s, DeletionFilter(ids=(run_id,)), limit=1))
        if not ids:
            raise NotFound(f"there is no run {run_id!r}; GET /api/container-runs lists the existing ones")
        deletion = await self._delete(ids, by=by, dry_run=dry_run, rolling=False)
        if deletion.reasons:
            raise Conflict(f"run {run_id} cannot be deleted: {deletion.reasons[run_id]}")
        return deletion

    async def delete_matching(
        self, filters: DeletionFilter, *, by: str, dry_run: bool = False, after: str | None = None
    ) -> Deletion:
        """Deletes matching runs that are not protected, at most `AT_MOST`, oldest first."""
        total, reasons, protected, more = Amounts(), dict[str, str](), 0, True
        while more and total.runs < AT_MOST:
            ids = await self._db.read(lambda s, after=after: queries.matching(s, filters, limit=TOGETHER + 1, after=after))  # type: ignore[misc]
            ids, more = ids[:TOGETHER], len(ids) > TOGETHER
            if not ids:
                break
            part = await self._delete(ids, by=by, dry_run=dry_run, rolling=filters.ids is None)
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

        deletion = await (self._db.read if dry_run else self._db.write)(work)
        if not dry_run and deletion.amounts.runs:
            log.info("runs deleted", action="runs_deleted", runs=deletion.amounts.runs, by=by, bytes=deletion.amounts.bytes)
            self._wanted.set()
        return deletion

    async def keep_on(self) -> None:
        """Runs rounds for ever; errors do not end it."""
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
        """Deletes runs older than the configured age in every workspace; hourly."""
        monotonic = self._clock.monotonic()
        if not self._keep_days or (self._retained is not None and monotonic - self._retained < RETAIN_S):
            return
        self._retained = monotonic
        expired = DeletionFilter(ended_before=self._clock.now() - timedelta(days=self._keep_days))
        with acting_as(None):
            deletion = await self.delete_matching(expired, by=BY_RETENTION)
            if deletion.amounts.runs:
                entry = AuditEntry(
                    at=self._clock.now(),
                    actor_kind=ActorKind.SYSTEM,
                    actor=BY_RETENTION,
                    action="runs deleted by retention",
                    detail=f"{deletion.amounts.runs} runs that ended more than {self._keep_days} days ago",
                )
                await self._db.write(lambda s: audit_queries.add(s, entry))
        if deletion.more:
            self._retained = None

    async def purge_round(self) -> bool:
        """Deletes rows and files of some deleted runs; returns whether there may be more."""
        rows = await self._db.read(lambda s: queries.unpurged(s, TOGETHER))
        for row in rows:
            if not await self._purge(row):
                return False
        return len(rows) == TOGETHER

    async def _purge(self, row: DeletedRun) -> bool:
        """Deletes files first, because the row says where they are. False if the run must wait."""
        archive = await self._db.read(lambda s: queries.archive_of(s, row.id))
        if archive is not None and archive.kind is not None and self._remove_archive is not None:
            try:
                await self._remove_archive(row.id, f"{archive.kind}.tar.gz")
            except Exception as error:  # the object store is unavailable; the next round tries again
                log.warning("archive not removed", action="archive_kept", run_id=row.id, error=str(error))
                return False
        for folder in self._folders:
            await asyncio.to_thread(shutil.rmtree, folder / row.id, ignore_errors=True)
        while not await self._leadership.write(lambda s: queries.purge(s, row.id)):
            pass  # lets others write in between
        return True

    async def pin(self, run_id: str, *, pinned: bool) -> None:
        """Protects a run from deletion, or removes the protection."""
        now = self._clock.now()

        def work(session: Session) -> None:
            if not queries.matching(session, DeletionFilter(ids=(run_id,)), limit=1):
                raise NotFound(f"there is no run {run_id!r}; GET /api/container-runs lists the existing ones")
            if pinned:
                queries.pin(session, run_id, now)
            else:
                queries.unpin(session, run_id)

        await self._db.write(work)
