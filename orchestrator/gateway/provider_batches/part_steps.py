"""Carries one part forward: submit, look for it if its submission was not confirmed, poll, fetch, settle.

The row says `submitting` before the request for the batch goes out. From then on the part is only submitted again if the
provider's list does not have it, `lost_after` later: no request that is still on its way can take longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog
from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.gateway.provider_batches import queries
from orchestrator.gateway.provider_batches.access import Access
from orchestrator.gateway.provider_batches.http import BatchTrouble
from orchestrator.gateway.provider_batches.lots import Lot, PartState
from orchestrator.gateway.provider_batches.part_files import part_file
from orchestrator.gateway.provider_batches.port import BatchApi, CallOutcome, RemoteBatch
from orchestrator.gateway.provider_batches.settling import settle, settle_rest
from orchestrator.gateway.provider_batches.tables import BatchPart
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.system.clock import Clock

SETTLED_AT_ONCE = 200
SETTLED_BYTES = 8 << 20
PATIENCE = timedelta(hours=24)
"""How long a batch that cannot be submitted, read or fetched is tried again."""
LONGEST_PAUSE_S = 300.0

log = structlog.get_logger()


@dataclass(frozen=True)
class StepPolicy:
    """`most_tries`: in how many batches a call may be before it counts as unanswered."""

    poll_s: float
    lost_after_s: float
    most_tries: int
    folder: Path


class PartSteps:
    def __init__(self, db: Database, leadership: Leadership, clock: Clock, access: Access, policy: StepPolicy) -> None:
        self._db, self._leadership, self._clock, self._access, self._policy = db, leadership, clock, access, policy

    async def carry_forward(self, part: BatchPart) -> None:
        """One step of the part; troubles are recorded, and the next look is later."""
        try:
            async with self._access.open(Lot.of(part.lot)) as (api, secrets):
                over = await self._db.read(lambda session: queries.run_has_ended(session, part.run_id))
                if part.state == PartState.PREPARED:
                    await (self._end(part, "the run has ended") if over else self._submit(part, api))
                elif part.state == PartState.SUBMITTING:
                    await self._look_for(part, api)
                else:
                    await self._look_at(part, api, secrets, cancel=over and not part.cancel_sent)
        except BatchTrouble as trouble:
            await self._note(part, trouble)

    async def _submit(self, part: BatchPart, api: BatchApi) -> None:
        lot = Lot.of(part.lot)
        async with part_file(
            self._db, part, api, lambda body: self._access.in_its_form(lot, body), self._policy.folder
        ) as file:
            if part.file_id is None:
                part.file_id = await api.upload(part, file)
            part.submit_began_at = self._clock.now()
            await self._change(part, state=PartState.SUBMITTING, file_id=part.file_id, submit_began_at=part.submit_began_at)
            try:
                async with asyncio.timeout(self._policy.lost_after_s):
                    remote = await api.create(part, file)
            except TimeoutError as error:
                raise BatchTrouble("the provider did not answer in time") from error
            except BatchTrouble as trouble:
                if not trouble.acted:
                    await self._change(part, state=PartState.PREPARED, submit_began_at=None)
                raise
        await self._adopt(part, remote)

    async def _look_for(self, part: BatchPart, api: BatchApi) -> None:
        async def known(ids: Collection[str]) -> set[str]:
            return await self._db.read(lambda session: queries.known_remotes(session, ids))

        search = await api.find(part, known)
        now = self._clock.now()
        if search.found is not None:
            await self._adopt(part, search.found)
        elif search.wait or now < (part.submit_began_at or now) + timedelta(seconds=self._policy.lost_after_s):
            pause_s = min(self._policy.poll_s, max(self._policy.lost_after_s / 4, 0.1))
            await self._change(part, next_look_at=now + timedelta(seconds=pause_s))
        else:
            log.warning("batch was not made", action="batch_not_made", run_id=part.run_id, part=part.id)
            await self._change(part, state=PartState.PREPARED, submit_began_at=None, next_look_at=now)

    async def _adopt(self, part: BatchPart, remote: RemoteBatch) -> None:
        now = self._clock.now()
        soon = now + timedelta(seconds=self._policy.poll_s)
        await self._change(
            part,
            state=PartState.SUBMITTED,
            remote_id=remote.id,
            submitted_at=now,
            expires_at=remote.expires_at,
            next_look_at=soon,
            troubles=0,
            error="",
        )
        log.info("batch submitted", action="batch_submitted", run_id=part.run_id, part=part.id, batch=remote.id)

    async def _look_at(self, part: BatchPart, api: BatchApi, secrets: tuple[str, ...], *, cancel: bool) -> None:
        assert part.remote_id is not None
        remote = await api.get(part.remote_id)
        if cancel:
            if not remote.ended:
                await api.cancel(part.remote_id)
            await self._change(part, cancel_sent=True)
            log.info("batch cancelled", action="batch_cancelled", run_id=part.run_id, part=part.id, batch=remote.id)
        counts: dict[str, Any] = {"answered": remote.answered, "failed": remote.failed, "troubles": 0, "error": ""}
        if remote.expires_at is not None:
            counts["expires_at"] = remote.expires_at
        if not remote.ended:
            await self._change(part, **counts, next_look_at=self._clock.now() + timedelta(seconds=self._policy.poll_s))
            return
        await self._change(part, **counts)
        group: list[CallOutcome] = []
        size = 0
        async for outcome in api.results(remote):
            group.append(outcome)
            size += len(str(outcome.message))
            if len(group) >= SETTLED_AT_ONCE or size > SETTLED_BYTES:
                await self._settle(part, group, secrets)
                group, size = [], 0
        await self._settle(part, group, secrets)
        await self._end(part, remote.error or "the batch ended without an answer to this call")

    async def _settle(self, part: BatchPart, group: list[CallOutcome], secrets: tuple[str, ...]) -> None:
        if not group:
            return
        now, most = self._clock.now(), self._policy.most_tries
        await self._db.write(lambda session: settle(session, part, group, secrets, now, most))

    async def _end(self, part: BatchPart, why: str, *, final: bool = False, lost: bool = False) -> None:
        """`lost`: the provider may have answered and billed the calls that have no answer here."""
        now, most = self._clock.now(), 0 if final else self._policy.most_tries

        def write(session: Session) -> int:
            row = queries.lock_part(session, part.id)
            if row is None or row.state == PartState.ENDED:
                return 0
            most_tries = 0 if queries.run_has_ended(session, row.run_id) else most
            rest = settle_rest(session, row, why, most_tries, lost_at=now if lost else None)
            row.state, row.ended_at, row.error = PartState.ENDED.value, now, why if rest else ""
            session.add(row)
            return rest

        rest = await self._leadership.write(write)
        log.info("batch ended", action="batch_ended", run_id=part.run_id, part=part.id, unanswered=rest)

    async def _note(self, part: BatchPart, trouble: BatchTrouble) -> None:
        """Try again later. A batch that the provider refuses, or that cannot be reached for a day, is given up; but never
        while the provider may be working on it unseen."""
        now, troubles = self._clock.now(), part.troubles + 1
        began = part.submitted_at or part.created_at
        log.warning("batch trouble", action="batch_trouble", run_id=part.run_id, part=part.id, error=str(trouble))
        prepared = part.state == PartState.PREPARED
        if prepared and (trouble.final or now > began + PATIENCE):
            await self._end(part, str(trouble), final=True)
            return
        expected = part.expires_at or began + PATIENCE
        if part.state == PartState.SUBMITTED and now > expected + PATIENCE:
            await self._end(part, f"its results could not be fetched: {trouble}", final=True, lost=True)
            return
        if part.submit_began_at is not None and part.state == PartState.SUBMITTING and now > part.submit_began_at + PATIENCE:
            await self._end(part, f"the provider does not say whether it has the batch: {trouble}", final=True, lost=True)
            return
        pause_s = min(self._policy.poll_s * 2 ** min(troubles - 1, 8), max(LONGEST_PAUSE_S, self._policy.poll_s))
        await self._change(part, next_look_at=now + timedelta(seconds=pause_s), troubles=troubles, error=str(trouble)[:1000])

    async def _change(self, part: BatchPart, **values: Any) -> None:
        """Write columns of the part, if we still lead; `part` follows."""
        stored = {name: value.value if isinstance(value, PartState) else value for name, value in values.items()}

        def write(session: Session) -> None:
            row = queries.lock_part(session, part.id)
            if row is None:
                raise LookupError(f"there is no part {part.id}")
            for name, value in stored.items():
                setattr(row, name, value)
            session.add(row)

        await self._leadership.write(write)
        for name, value in stored.items():
            setattr(part, name, value)
