"""Which providers there are now: those of the environment, and those that were stored, which may change at any time.

Everything that needs a provider asks here each time and keeps no copy. A provider of the environment hides a stored one of
the same name. `anthropic` and `openai` exist always; a stored one replaces them unless a variable configures them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum

from orchestrator.gateway.upstream.providers import Provider, providers_from_env

Listener = Callable[[Mapping[str, Provider]], Awaitable[None]]
BUILT_IN = ("anthropic", "openai")
RESERVED = frozenset({"demo", "kinds"})


class ProviderSource(StrEnum):
    """Where a provider is configured."""

    ENVIRONMENT = "environment"  #: by environment variables of the service; cannot be changed here
    STORED = "stored"  #: in the database
    BUILT_IN = "built_in"  #: always there, without any setting


class ProviderDirectory:
    """Raises `BadProvider` if the variables make no sense."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        self._of_env = providers_from_env(env)
        self._stored: Mapping[str, Provider] = {}
        self._current: Mapping[str, Provider] = self._of_env
        self._listeners: list[Listener] = []

    @property
    def current(self) -> Mapping[str, Provider]:
        return self._current

    def source(self, name: str) -> ProviderSource | None:
        """None if there is no such provider."""
        if name in self._of_env and self.set_by_environment(name):
            return ProviderSource.ENVIRONMENT
        if name in self._stored:
            return ProviderSource.STORED
        return ProviderSource.BUILT_IN if name in self._of_env else None

    def set_by_environment(self, name: str) -> bool:
        """Whether a variable configures it."""
        if name not in BUILT_IN:
            return name in self._of_env
        usual = (f"{name.upper()}_API_KEY", f"{name.upper()}_API_KEY_FILE", f"{name.upper()}_BASE_URL")
        own = f"BENCHYARD_PROVIDER_{name.upper()}_"
        return any(value.strip() and (key in usual or key.startswith(own)) for key, value in self.env.items())

    async def follow(self, listener: Listener) -> None:
        """Calls it now and after every change."""
        self._listeners.append(listener)
        await listener(self._current)

    async def set_stored(self, stored: Mapping[str, Provider]) -> None:
        if stored == self._stored:
            return
        self._stored = dict(stored)
        visible = {name: provider for name, provider in stored.items() if not self.set_by_environment(name)}
        self._current = {**self._of_env, **visible}
        for listener in self._listeners:
            await listener(self._current)
