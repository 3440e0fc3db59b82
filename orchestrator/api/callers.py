"""Who calls: the installation's own token, one of the named tokens, or a browser that was signed in with one of them.

The secret of a named token is known to its holder only: it is found by its hash, asked for at each request, so that a
revoked token ends at once, on every orchestrator of the database. A page's session names its token and is sealed with the
installation's token: what is in the database does not open a page.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import Session

from orchestrator.clock import Clock
from orchestrator.db import token_queries
from orchestrator.db.session import Database
from orchestrator.db.token_tables import ApiToken
from orchestrator.identifiers import new_token, same_token, token_hash
from orchestrator.scopes import Scope

PREFIX = "by_"
SESSION_S = 30 * 24 * 3600
USED_AGAIN_AFTER = timedelta(minutes=1)
"""How exact the time of the last use is."""


@dataclass(frozen=True)
class Caller:
    name: str
    scope: Scope
    token_id: int = 0
    """0: the installation's own token."""


OWNER = Caller("the installation's token", Scope.ADMIN)


def new_secret() -> str:
    """A named token's secret; the beginning says to people and scanners what it is."""
    return PREFIX + new_token()


class Authority:
    """Knows the installation's token, and finds the others once there is a database."""

    def __init__(self, token: str, clock: Clock) -> None:
        self._token = token
        self._clock = clock
        self._db: Database | None = None

    def open(self, db: Database | None) -> None:
        self._db = db

    async def by_token(self, given: str) -> Caller | None:
        if same_token(given, self._token):
            return OWNER
        if self._db is None or not given.startswith(PREFIX):
            return None
        secret = token_hash(given)
        row = await self._db.read(lambda s: token_queries.by_hash(s, secret))
        return await self._known(row) if row is not None and same_token(row.secret_hash, secret) else None

    async def by_session(self, given: str) -> Caller | None:
        token_id, issued, seal = _parts(given)
        if not 0 <= self._clock.now().timestamp() - issued < SESSION_S or self._db is None:
            return None
        row = await self._db.read(lambda s: token_queries.by_id(s, token_id)) if token_id else None
        if token_id and row is None:
            return None
        if not same_token(seal, self._seal(token_id, issued, row.secret_hash if row else "")):
            return None
        return OWNER if row is None else await self._known(row)

    async def session_for(self, caller: Caller) -> str:
        """The value of a cookie for somebody who has shown a token."""
        issued = int(self._clock.now().timestamp())
        secret = ""
        if caller.token_id and self._db is not None:
            row = await self._db.read(lambda s: token_queries.by_id(s, caller.token_id))
            secret = row.secret_hash if row else ""
        return f"{caller.token_id}.{issued}.{self._seal(caller.token_id, issued, secret)}"

    def _seal(self, token_id: int, issued: int, secret_hash: str) -> str:
        text = f"benchyard page session 2 {token_id} {issued} {secret_hash}"
        return hmac.new(self._token.encode(), text.encode(), hashlib.sha256).hexdigest()

    async def _known(self, row: ApiToken) -> Caller | None:
        now = self._clock.now()
        if row.expires_at is not None and row.expires_at <= now:
            return None
        if row.last_used_at is None or now - row.last_used_at >= USED_AGAIN_AFTER:
            await self._used(row.id or 0, now)
        return Caller(row.name, Scope(row.scope), row.id or 0)

    async def _used(self, token_id: int, now: datetime) -> None:
        assert self._db is not None

        def mark(session: Session) -> None:
            token_queries.mark_used(session, token_id, now)

        await self._db.write(mark)


def _parts(session: str) -> tuple[int, int, str]:
    """Token, time of issue, seal; what is no session of ours was issued at the beginning of time."""
    match session.split("."):
        case [token_id, issued, seal] if (token_id + issued).isascii() and (token_id + issued).isdigit():
            if len(token_id) < 11 and len(issued) < 13 and token_id and issued:
                return int(token_id), int(issued), seal
    return 0, 0, ""
