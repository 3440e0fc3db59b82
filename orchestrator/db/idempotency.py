"""Idempotency keys: a client that repeats a request with the same Idempotency-Key gets the first answer again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import delete
from sqlmodel import Session, col

from orchestrator.db.insert_once import insert_once
from orchestrator.db.service_tables import IdempotencyKey
from orchestrator.db.workspaces import workspace_of
from orchestrator.errors import Conflict


def find(session: Session, scope: str, key: str) -> IdempotencyKey | None:
    return session.get(IdempotencyKey, (workspace_of(session), key, scope))


def remember(
    session: Session, scope: str, key: str, request_hash: str, answer: dict[str, Any], now: datetime
) -> IdempotencyKey | None:
    """Store the answer. Returns the answer already stored if another request with this key was faster."""
    row = IdempotencyKey(key=key, scope=scope, request_hash=request_hash, answer=answer, created_at=now)
    return None if insert_once(session, row) else find(session, scope, key)


def settle(session: Session, scope: str, key: str, answer: dict[str, Any]) -> None:
    """Store the answer to a key that was remembered in the same transaction, before the answer was known."""
    row = find(session, scope, key)
    assert row is not None
    row.answer = answer
    session.add(row)


def forget_before(session: Session, before: datetime) -> int:
    return int(session.connection().execute(delete(IdempotencyKey).where(col(IdempotencyKey.created_at) < before)).rowcount)


LATER = "later"
"""Marks a field added later: it is left out of the digest at its default value, so that digests of older requests stay
valid."""


@dataclass(frozen=True)
class Idempotency:
    """A client's key for one endpoint (`scope`), and the digest of its request."""

    scope: str
    key: str
    digest: str = ""

    def of(self, request: Any) -> Idempotency:
        """The same key with the digest of this request: dataclasses, or anything JSON can express."""
        text = json.dumps(_plain(request), sort_keys=True, default=str)
        return replace(self, digest=hashlib.sha256(text.encode()).hexdigest())


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        members = {field.name: (field, getattr(value, field.name)) for field in fields(value)}
        return {
            name: _plain(entry)
            for name, (field, entry) in members.items()
            if not (LATER in field.metadata and entry == field.default)
        }
    return list(map(_plain, value)) if isinstance(value, list | tuple) else value


def keyed(scope: str, key: str | None) -> Idempotency | None:
    """None if the request has no key."""
    return None if key is None else Idempotency(scope, key)


def stored_reply(session: Session, idempotency: Idempotency | None) -> dict[str, Any] | None:
    """The answer given to this request before. Raises `Conflict` if the key was used for another request."""
    row = None if idempotency is None else find(session, idempotency.scope, idempotency.key)
    if row is None or idempotency is None:
        return None
    if row.request_hash != idempotency.digest:
        raise Conflict("this Idempotency-Key was used for another request; use a new key for a new request")
    return row.answer


def answer_once(
    session: Session, idempotency: Idempotency | None, now: datetime, make: Callable[[], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """The answer of `make`, or the one given to the same request before. All within the caller's transaction."""
    if idempotency is None:
        return make()
    scope, key = idempotency.scope, idempotency.key
    if remember(session, scope, key, idempotency.digest, {}, now) is None:
        answer = make()
        settle(session, scope, key, dict(answer))
        return answer
    reply = stored_reply(session, idempotency)
    assert reply is not None
    return reply
