"""The service for named API tokens: create, list, revoke. The creator gets the secret; the service stores a hash."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import structlog
from sqlmodel import Session

from orchestrator.accounts import queries as account_queries
from orchestrator.db.session import Database, DuplicateKey
from orchestrator.errors import Conflict, Forbidden, NotFound
from orchestrator.scopes import Scope
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import new_token, token_hash
from orchestrator.tokens import queries
from orchestrator.tokens.tables import ApiToken

log = structlog.get_logger()

PREFIX = "by_"


def new_secret() -> str:
    """A named token's secret; its prefix tells people and secret scanners what it is."""
    return PREFIX + new_token()


class Tokens:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def listed(self) -> list[tuple[ApiToken, str]]:
        """The workspace's tokens, oldest first, each with its creator's name (empty for the installation's token)."""

        def read(session: Session) -> list[tuple[ApiToken, str]]:
            people = {user.id: user.name or user.email for user in account_queries.users(session)}
            return [(row, people.get(row.user_id, "")) for row in queries.all_tokens(session)]

        return await self._db.read(read)

    async def of_user(self, user_id: int) -> Sequence[ApiToken]:
        return await self._db.read(lambda s: queries.of_user(s, user_id))

    async def make(self, name: str, scope: Scope, days: int | None, *, maker: Scope) -> tuple[ApiToken, str]:
        """Returns the token and its secret. A token cannot have more rights than its creator (`maker`)."""
        if not maker.allows(scope):
            raise Forbidden(f"You have the scope {maker} here; you cannot make a token of scope {scope}.")
        secret, now = new_secret(), self._clock.now()
        row = ApiToken(
            name=name.strip(),
            secret_hash=token_hash(secret),
            scope=scope.value,
            created_at=now,
            expires_at=now + timedelta(days=days) if days else None,
        )

        def insert(session: Session) -> ApiToken:
            session.add(row)
            session.flush()
            return row

        try:
            stored = await self._db.write(insert)
        except DuplicateKey as error:
            raise Conflict(f"there is a token {row.name!r} already; revoke it first, or choose another name") from error
        log.info("token made", action="token_made", token=stored.id, name=stored.name, scope=stored.scope)
        return stored, secret

    async def revoke(self, token_id: int, user_id: int | None = None) -> None:
        """Revokes a token of this workspace; with a user, only one of theirs."""

        def remove(session: Session) -> str:
            row = queries.by_id(session, token_id)
            if row is None or user_id not in (None, row.user_id):
                raise NotFound(f"there is no token {token_id}; GET /api/tokens lists the existing ones")
            session.delete(row)
            return row.name

        name = await self._db.write(remove)
        log.info("token revoked", action="token_revoked", token=token_id, name=name)
