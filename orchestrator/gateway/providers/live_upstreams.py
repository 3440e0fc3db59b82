"""One upstream per provider, replaced while calls run: a call that waits to be repeated goes out with the new settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from orchestrator.gateway.calls import Call
from orchestrator.gateway.edge.errors import Code, GatewayError
from orchestrator.gateway.upstream.port import Received, Reply, Upstream
from orchestrator.gateway.upstream.providers import Provider
from orchestrator.startup import BadConfiguration


class LiveUpstream:
    """What calls hold: always the upstream of the provider's current settings."""

    def __init__(self, upstream: Upstream) -> None:
        self.current = upstream

    @property
    def server(self) -> str:
        return self.current.server

    async def ask(self, call: Call, received: Received) -> Reply:
        return await self.current.ask(call, received)

    def notes(self, model: str) -> list[str]:
        return self.current.notes(model)

    async def close(self) -> None:
        await self.current.close()


class UnusableUpstream:
    """Stands for a provider that was removed, or whose settings cannot be used."""

    def __init__(self, name: str, why: str) -> None:
        self.server = f"unusable {name}"
        self.why = why

    async def ask(self, call: Call, received: Received) -> Reply:
        raise GatewayError(404, Code.NOT_FOUND, self.why)

    def notes(self, model: str) -> list[str]:
        return [self.why]

    async def close(self) -> None:
        return None


class LiveUpstreams(Mapping[str, Upstream]):
    def __init__(self, fixed: Mapping[str, Upstream], make: Callable[[Provider], Upstream]) -> None:
        self._fixed = fixed
        self._make = make
        self._live: dict[str, tuple[Provider, LiveUpstream]] = {}

    def __getitem__(self, name: str) -> Upstream:
        return self._fixed[name] if name in self._fixed else self._live[name][1]

    def __iter__(self) -> Iterator[str]:
        yield from (*self._fixed, *self._live)

    def __len__(self) -> int:
        return len(self._fixed) + len(self._live)

    async def apply(self, providers: Mapping[str, Provider]) -> None:
        """Exchange what changed. Answers that are on their way arrive: closing ends only idle connections."""
        for name in [name for name in self._live if name not in providers]:
            _, live = self._live.pop(name)
            old, live.current = live.current, UnusableUpstream(name, f"the provider {name} was removed")
            await old.close()
        for name, provider in providers.items():
            known = self._live.get(name)
            if known is None:
                self._live[name] = provider, LiveUpstream(self._made(provider))
            elif known[0] != provider:
                old, known[1].current = known[1].current, self._made(provider)
                self._live[name] = provider, known[1]
                await old.close()

    async def close(self) -> None:
        for name in self:
            await self[name].close()

    def _made(self, provider: Provider) -> Upstream:
        try:
            return self._make(provider)
        except BadConfiguration as error:
            if not provider.revision:  # of the environment: the service does not start with it
                raise
            return UnusableUpstream(provider.name, f"the provider {provider.name} cannot be used: {error}")
