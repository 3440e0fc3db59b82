"""Records every change in the audit log, whoever requests it and however it ends, so that no endpoint can be forgotten.

An entry is stored before its response goes out. It holds the route and the ids in the path but nothing of the query, body or
headers, which may contain secrets. Refusals are recorded too, but rate-limited per address, so that nobody can fill the disk
with them.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.audit import queries as audit_queries
from orchestrator.audit.queries import ActorKind
from orchestrator.audit.tables import AuditEntry
from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.errors import ServiceError
from orchestrator.http.access.identity import Caller
from orchestrator.http.access.rate_limits import TokenBuckets
from orchestrator.http.policy import MATCH, Audit
from orchestrator.scopes import SAFE_METHODS
from orchestrator.system.clock import Clock

log = structlog.get_logger()

NOTE = "benchyard.audit"
REFUSALS = frozenset({401, 403, 429})
REFUSALS_A_SECOND, REFUSALS_AT_ONCE = 0.2, 30
UNWRITTEN = 1000
"""How many entries are held while the database is unavailable."""
MARKED_SECRET = re.compile(r"(?:by_|sk-)[\w-]{8,}", re.ASCII)
LONG_WORD = re.compile(r"[\w-]{40,}", re.ASCII)
SECRET_PARTS = (re.compile("[A-Z]"), re.compile("[a-z]"), re.compile("[0-9]"))
"""A long word that matches all of these looks like a secret."""


@dataclass
class Note:
    """Details of an audit entry that only the handler knows."""

    action: str | None = None
    object_id: str | None = None
    actor: Caller | str | None = None
    detail: str = ""


def note(scope: Scope, **fields: Any) -> None:
    """Add details to this request's entry; with an `action`, there is an entry even for a request that only reads."""
    entry = scope.setdefault(NOTE, Note())
    for name, value in fields.items():
        setattr(entry, name, value)


class AuditBook:
    """Stores entries. While the database is unavailable, a limited number is held back; all of them are logged in any
    case."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._db: Database | None = None
        self._waiting: deque[AuditEntry] = deque(maxlen=UNWRITTEN)

    def open(self, db: Database | None) -> None:
        self._db = db

    async def write(self, entry: AuditEntry) -> None:
        entries = [*self._waiting, entry]
        self._waiting.clear()
        try:
            if self._db is None:
                raise DatabaseUnavailable("it is not open")
            await self._db.write(lambda session: audit_queries.add(session, *(_copy(entry) for entry in entries)))
        except DatabaseUnavailable as error:
            self._waiting.extend(entries)
            values = {**entry.model_dump(exclude={"id", "at"}), "audit_action": entry.action}
            log.error("audit entry not stored yet", **{**values, "action": "audit_unwritten"}, error=str(error))


class AuditTrail:
    """Sits around the gate and inside the guard: sees who was admitted, who was refused, and the outcome."""

    def __init__(self, app: ASGIApp, *, book: AuditBook) -> None:
        self._app = app
        self._book = book
        self._buckets = TokenBuckets()
        self._untold: dict[str, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope[MATCH].policy.audit is Audit.NEVER:
            await self._app(scope, receive, send)
            return
        told = False

        async def tell(message: Message) -> None:
            nonlocal told
            if message["type"] == "http.response.start" and not told:
                told = True
                await self._record(scope, message["status"], Headers(raw=message["headers"]).get("location"))
            await send(message)

        try:
            await self._app(scope, receive, tell)
        except BaseException as error:
            if not told:
                status = error.status if isinstance(error, ServiceError) else 500
                given_up = isinstance(error, asyncio.CancelledError)
                await asyncio.shield(self._record(scope, 504 if given_up else status, None))
            raise

    async def _record(self, scope: Scope, status: int, location: str | None) -> None:
        note: Note = scope.get(NOTE) or Note()
        if not self._matters(scope, status, note):
            return
        now = self._book.clock.now()
        entry = entry_of(scope, note, status, location, now)
        if status in REFUSALS:
            address = entry.address
            if self._buckets.take(address, REFUSALS_A_SECOND, REFUSALS_AT_ONCE, self._book.clock.monotonic()):
                if len(self._untold) < UNWRITTEN:
                    self._untold[address] = self._untold.get(address, 0) + 1
                return
            if more := self._untold.pop(address, 0):
                entry.detail = f"{entry.detail} {more} refusals before this one were not written down.".strip()
        await self._book.write(entry)

    def _matters(self, scope: Scope, status: int, note: Note) -> bool:
        if note.action is not None:
            return True
        if scope["method"] not in SAFE_METHODS:
            return scope[MATCH].policy.audit is Audit.CHANGES or status in REFUSALS
        return status in REFUSALS and "authorization" in Headers(scope=scope)


def without_secrets(text: str) -> str:
    """Mask secrets, which people will put into paths by mistake. Linear time, because strangers choose the path."""

    def hidden(word: re.Match[str]) -> str:
        return "[secret]" if all(part.search(word[0]) for part in SECRET_PARTS) else word[0]

    return MARKED_SECRET.sub("[secret]", LONG_WORD.sub(hidden, text))


def entry_of(scope: Scope, note: Note, status: int, location: str | None, now: datetime) -> AuditEntry:
    actor = note.actor or scope.get("benchyard.caller")
    caller = actor if isinstance(actor, Caller) else None
    route = getattr(scope.get("route"), "path", None)
    peer = scope.get("client")
    return AuditEntry(
        at=now,
        **actor_of(caller, actor if isinstance(actor, str) else ""),
        action=note.action or f"{scope['method'][:20]} {route or '(no such address)'}"[:200],
        object_id=without_secrets(note.object_id or _object(scope, status, location))[:300],
        status=status,
        address=(peer[0] if peer else "")[:60],
        request_id=scope.get("benchyard.request_id", ""),
        detail=note.detail[:1000],
    )


def actor_of(caller: Caller | None, otherwise: str = "") -> dict[str, Any]:
    if caller is None:
        return {"actor_kind": ActorKind.NOBODY, "actor": otherwise[:200]}
    kind = ActorKind.OWNER if caller.user_id is None else ActorKind.USER
    return {
        "actor_kind": ActorKind.TOKEN if caller.token_id else kind,
        "actor": caller.name[:200],
        "user_id": caller.user_id,
        "token_id": caller.token_id or None,
        "workspace_id": caller.workspace_id,
    }


def _object(scope: Scope, status: int, location: str | None) -> str:
    """The ids in the path; for something that was created, the id in its address."""
    ids = "/".join(str(value) for value in scope.get("path_params", {}).values())
    if ids or location is None or not 200 <= status < 400:
        return _printable(ids)
    last = urlsplit(location).path.rstrip("/").rpartition("/")[2]
    return _printable(last) if any(character.isdigit() for character in last) else ""


def _printable(text: str) -> str:
    return "".join(character for character in text if character.isprintable())


def _copy(entry: AuditEntry) -> AuditEntry:
    """A new row for each attempt to store it: a failed one may have changed the first."""
    return AuditEntry(**entry.model_dump(exclude={"id"}))
