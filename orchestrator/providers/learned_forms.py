"""Keeps what servers taught about requests in the database, so that it outlives a restart and all processes share it."""

from __future__ import annotations

import asyncio

import structlog
from sqlmodel import Session

from orchestrator.db.session import Database, DatabaseUnavailable, DuplicateKey
from orchestrator.gateway.providers.form_book import FormBook, Learned, Place
from orchestrator.gateway.upstream.kinds.request_forms import Adjustment
from orchestrator.providers import queries
from orchestrator.providers.tables import LearnedForm
from orchestrator.system.clock import Clock

log = structlog.get_logger()

SENTENCE_CHARS = 500
_KNOWN = frozenset(Adjustment)


class LearnedForms:
    def __init__(self, db: Database, clock: Clock, book: FormBook) -> None:
        self._db = db
        self._clock = clock
        self._book = book
        self._unwritten: dict[Place, Learned] = {}
        self._writing: set[asyncio.Task[None]] = set()
        book.on_learned = self._learned

    async def refresh(self) -> None:
        """Read what all processes learned. What this one has not stored yet stays."""
        rows = await self._db.read(queries.learned)
        stored = {(row.provider, row.server, row.model): _lesson(row) for row in rows}
        self._book.set_all({**stored, **self._unwritten})

    async def forget(self, provider: str, model: str | None = None) -> int:
        """The next call is made in the usual form again. Returns for how many models something was known."""
        self._unwritten = {
            place: learned
            for place, learned in self._unwritten.items()
            if place[0] != provider or model not in (None, place[2])
        }
        count = await self._db.write(lambda session: queries.forget(session, provider, model))
        await self.refresh()
        return count

    def _learned(self, place: Place, learned: Learned) -> None:
        self._unwritten[place] = learned
        task = asyncio.get_running_loop().create_task(self._store(place, learned))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _store(self, place: Place, learned: Learned) -> None:
        now = self._clock.now()

        def store(session: Session) -> None:
            row = queries.learned_form(session, *place)
            row = row or LearnedForm(provider=place[0], server=place[1], model=place[2], learned_at=now)
            row.form = None if learned.form is None else sorted(learned.form)
            row.ignored_limit, row.most_over = learned.ignored_limit[:SENTENCE_CHARS], learned.most_over
            row.learned_at = now
            session.add(row)
            session.flush()

        try:
            await self._db.write(store)
        except (DatabaseUnavailable, DuplicateKey) as error:  # it is learned again, or another process stored it
            log.warning("form not stored", action="form_unstored", provider=place[0], model=place[2], error=str(error))
        if self._unwritten.get(place) == learned:
            del self._unwritten[place]


def _lesson(row: LearnedForm) -> Learned:
    form = None if row.form is None else frozenset(Adjustment(name) for name in row.form if name in _KNOWN)
    return Learned(form, row.ignored_limit, row.most_over)
