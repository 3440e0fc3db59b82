"""Providers that are stored: add, change, remove, and keep every process of the installation in step with the table.

Secrets are sealed for a provider's name and origin. A change that moves a provider to another origin must bring its secrets
again, so that nobody can have a key sent elsewhere.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog
from sqlmodel import Session

from orchestrator.accounts.vault import CannotOpen, Vault
from orchestrator.db.session import Database, DatabaseUnavailable, DuplicateKey
from orchestrator.errors import Conflict, Invalid, NotFound
from orchestrator.gateway.providers.directory import ProviderDirectory
from orchestrator.gateway.upstream.providers import Provider
from orchestrator.providers import queries
from orchestrator.providers.definition import Definition, Secrets, check, split_login
from orchestrator.providers.tables import StoredProvider
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import uuid7

log = structlog.get_logger()

LOOK_EVERY_S = 1.0


class ProviderService:
    def __init__(self, db: Database, clock: Clock, vault: Vault, directory: ProviderDirectory, data_dir: Path) -> None:
        self._db = db
        self._clock = clock
        self._vault = vault
        self.directory = directory
        self._data_dir = data_dir

    async def listed(self) -> tuple[dict[str, StoredProvider], dict[str, int]]:
        """The stored providers by name, and the number of models of every provider."""
        rows, counts = await self._db.read(lambda s: (queries.providers(s), queries.model_counts(s)))
        return {row.name: row for row in rows}, counts

    async def add(self, name: str, definition: Definition, secrets: Secrets, by: str) -> StoredProvider:
        self._check_name(name)
        definition = _told(definition, secrets)
        check(name, definition, secrets, self.directory.env, self._data_dir)
        now = self._clock.now()
        origin = _origin(definition, name)
        row = StoredProvider(
            name=name,
            settings=definition.stored(),
            origin=origin,
            sealed=self._sealed(name, origin, secrets),
            revision=uuid7(now),
            created_by=by,
            created_at=now,
            updated_at=now,
        )

        def insert(session: Session) -> StoredProvider:
            session.add(row)
            session.flush()
            return row

        try:
            stored = await self._db.write(insert)
        except DuplicateKey as error:
            raise Conflict(f"there is a provider {name} already; PATCH /api/providers/{name} changes it") from error
        await self.refresh()
        return stored

    async def change(self, name: str, settings: Mapping[str, Any], secret: Mapping[str, Any]) -> StoredProvider:
        """`settings` replace those of the definition; `secret` has `key`, `headers` or `proxy_login` if they change."""
        self._check_name(name)
        now = self._clock.now()

        def update(session: Session) -> StoredProvider:
            row = queries.lock(session, name)
            if row is None:
                raise self._unknown(name)
            definition = replace(Definition.of(row.settings), **settings)
            if secret.get("key"):
                definition = replace(definition, key_variable="", key_file="")
            origin = _origin(definition, name)
            secrets = self._changed_secrets(row, origin, secret)
            if settings.get("key_variable") or settings.get("key_file"):
                secrets = replace(secrets, key="")
            definition = _told(definition, secrets)
            check(name, definition, secrets, self.directory.env, self._data_dir)
            row.settings, row.origin = definition.stored(), origin
            row.sealed = self._sealed(name, origin, secrets)
            row.revision, row.updated_at = uuid7(now), now
            session.add(row)
            return row

        changed = await self._db.write(update)
        await self.refresh()
        return changed

    async def remove(self, name: str) -> None:
        self._check_name(name)

        def delete(session: Session) -> None:
            row = queries.lock(session, name)
            if row is None:
                raise self._unknown(name)
            session.delete(row)
            queries.forget(session, name)

        await self._db.write(delete)
        await self.refresh()

    async def refresh(self) -> None:
        """Read the table and exchange what changed."""
        rows = await self._db.read(queries.providers)
        await self.directory.set_stored({row.name: self._provider(row) for row in rows})

    async def keep_on(self, also: Callable[[], Awaitable[None]]) -> None:
        """Notice changes that another process of the installation made. Runs until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.refresh()
                await also()
            except DatabaseUnavailable as error:
                log.warning("providers not read", action="providers_unread", error=str(error))

    async def rotate(self) -> tuple[int, int]:
        """Seals everything again with the first master key. Returns the numbers sealed and not openable."""

        def seal_again(session: Session) -> tuple[int, int]:
            sealed = unreadable = 0
            for row in queries.lock_all(session):
                if row.sealed is None or self._vault.is_current(row.sealed):
                    continue
                try:
                    row.sealed = self._sealed(row.name, row.origin, self._secrets(row))
                except CannotOpen as error:
                    log.error("provider cannot be opened", action="key_unreadable", provider=row.name, error=str(error))
                    unreadable += 1
                    continue
                session.add(row)
                sealed += 1
            return sealed, unreadable

        return await self._db.write(seal_again)

    def _provider(self, row: StoredProvider) -> Provider:
        definition = Definition.of(row.settings)
        try:
            secrets = self._secrets(row)
        except CannotOpen as error:
            why = f"the secrets of provider {row.name} cannot be opened: {error}"

            def refuse() -> str:
                raise ValueError(why)

            return definition.provider(row.name, Secrets(), revision=row.revision, opened=refuse)
        opened = (lambda: secrets.key) if secrets.key else None
        return definition.provider(row.name, secrets, revision=row.revision, opened=opened)

    def _changed_secrets(self, row: StoredProvider, origin: str, secret: Mapping[str, Any]) -> Secrets:
        try:
            kept = self._secrets(row)
        except CannotOpen:
            kept = Secrets()  # what cannot be opened can only be entered again
        if origin != row.origin:
            for field, value in (("key", kept.key), ("headers", kept.headers)):
                if value and field not in secret:
                    raise Invalid(
                        f"{field}: it was given for {row.origin}; give it again for {origin}, or null to remove it"
                    )
        given: dict[str, Any] = {name: value or ({} if name == "headers" else "") for name, value in secret.items()}
        return replace(kept, **given)

    def _secrets(self, row: StoredProvider) -> Secrets:
        if row.sealed is None:
            return Secrets()
        opened = json.loads(self._vault.open(row.sealed, _purpose(row.name, row.origin)))
        return Secrets(opened.get("key", ""), opened.get("headers", {}), opened.get("proxy_login", ""))

    def _sealed(self, name: str, origin: str, secrets: Secrets) -> str | None:
        if not secrets:
            return None
        text = json.dumps({"key": secrets.key, "headers": dict(secrets.headers), "proxy_login": secrets.proxy_login})
        return self._vault.seal(text, _purpose(name, origin))

    def _check_name(self, name: str) -> None:
        if self.directory.set_by_environment(name):
            raise Conflict(f"{name} is set by environment variables of the service; change it there, or use another name")

    def _unknown(self, name: str) -> NotFound:
        known = ", ".join(sorted(self.directory.current))
        return NotFound(f"there is no stored provider {name[:100]}; GET /api/providers lists: {known}")


def _told(definition: Definition, secrets: Secrets) -> Definition:
    """The definition with what may be shown of the secrets, and without credentials in the proxy's address."""
    return replace(
        definition,
        key_hint=secrets.hint,
        header_names=tuple(sorted(secrets.headers)),
        proxy=split_login(definition.proxy)[0],
    )


def _origin(definition: Definition, name: str) -> str:
    try:
        scheme, host, port = definition.provider(name, Secrets()).origin
    except ValueError:
        raise Invalid("base_url: it is not an address") from None
    return f"{scheme}://{host}:{port}"


def _purpose(name: str, origin: str) -> str:
    """What the sealed secrets are bound to."""
    return f"provider {name} {origin}"
