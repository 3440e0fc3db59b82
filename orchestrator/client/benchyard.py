"""The two clients. They have the same resources; one blocks, the other is awaited."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Generic, Self

import anyio
import httpx

from orchestrator.client.flavours import Async, F, Sync
from orchestrator.client.resources.catalogue import Benchmarks, Datasets, Models
from orchestrator.client.resources.evals import Evals, EvalSets, Traces
from orchestrator.client.resources.measuring import Batches, Results, Schedules
from orchestrator.client.resources.operating import Alerts, ProviderKeys, Service, Tokens, Webhooks
from orchestrator.client.resources.plain import Plain
from orchestrator.client.resources.providers import Prices, Providers
from orchestrator.client.resources.runs import Jobs, Runs
from orchestrator.client.service_address import find_address
from orchestrator.client.steps import Retry
from orchestrator.client.transports import Address, Asynchronous, Blocking

DEFAULT_RETRY = Retry()


class Resources(Generic[F]):
    def __init__(self, flavour: F) -> None:
        self.runs = Runs(flavour)
        self.jobs = Jobs(flavour)
        self.batches = Batches(flavour)
        self.schedules = Schedules(flavour)
        self.results = Results(flavour)
        self.models = Models(flavour)
        self.providers = Providers(flavour)
        self.prices = Prices(flavour)
        self.benchmarks = Benchmarks(flavour)
        self.datasets = Datasets(flavour)
        self.traces = Traces(flavour)
        self.eval_sets = EvalSets(flavour)
        self.evals = Evals(flavour)
        self.alerts = Alerts(flavour)
        self.webhooks = Webhooks(flavour)
        self.tokens = Tokens(flavour)
        self.provider_keys = ProviderKeys(flavour)
        self.service = Service(flavour)
        self.plain = Plain(flavour)


class Benchyard(Resources[Sync]):
    """A client that blocks. One may be shared by threads.

    `url`, `token` and `workspace` default to what the `benchyard` command uses: `BENCHYARD_URL`, `BENCHYARD_TOKEN`,
    `BENCHYARD_WORKSPACE`, the token of `benchyard login`, or that of the service on this machine. An `address` says all
    three.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        workspace: str | None = None,
        retry: Retry = DEFAULT_RETRY,
        address: Address | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        address = address or find_address(url, token, workspace)
        self.url = address.url
        self._transport = Blocking(address, transport, sleep, monotonic)
        super().__init__(Sync(self._transport, retry))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()


class AsyncBenchyard(Resources[Async]):
    """A client for asyncio and trio; otherwise as `Benchyard`."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        workspace: str | None = None,
        retry: Retry = DEFAULT_RETRY,
        address: Address | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        address = address or find_address(url, token, workspace)
        self.url = address.url
        self._transport = Asynchronous(address, transport, sleep, monotonic)
        super().__init__(Async(self._transport, retry))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()
