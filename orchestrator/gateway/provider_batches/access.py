"""Opens a provider's batch interface for one part: its address, the payer's key, and its form of requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx

from orchestrator.gateway.edge.errors import GatewayError
from orchestrator.gateway.protocols.protocol import Message
from orchestrator.gateway.provider_batches.anthropic_batches import AnthropicBatches
from orchestrator.gateway.provider_batches.http import TIMEOUT, BatchHttp, BatchTrouble, of_gateway_error
from orchestrator.gateway.provider_batches.lots import Lot
from orchestrator.gateway.provider_batches.openai_batches import OpenAIBatches
from orchestrator.gateway.provider_batches.port import BatchApi
from orchestrator.gateway.providers.live_upstreams import LiveUpstream
from orchestrator.gateway.upstream.http_upstream import HttpUpstream
from orchestrator.gateway.upstream.port import Upstream
from orchestrator.gateway.upstream.secrets.scrubbing import SECRET_CHARS, secrets_in_headers
from runner.contract.run_spec import Protocol

ENDPOINTS = {
    Protocol.OPENAI_CHAT: "/v1/chat/completions",
    Protocol.OPENAI_RESPONSES: "/v1/responses",
}
VERSION = {"anthropic-version": "2023-06-01"}


class Access:
    """`upstream` returns that of a provider by its name, or None."""

    def __init__(self, upstream: Callable[[str], Upstream | None]) -> None:
        self._upstream = upstream

    def in_its_form(self, lot: Lot, body: Message) -> Message:
        return self._of(lot).in_its_form(lot.protocol, lot.model, body)

    @asynccontextmanager
    async def open(self, lot: Lot) -> AsyncIterator[tuple[BatchApi, tuple[str, ...]]]:
        """The interface and the secrets that no stored answer may contain. Raises `BatchTrouble`."""
        upstream = self._of(lot)
        provider = upstream.provider
        try:
            key = await upstream.key_of(lot.payer)
        except GatewayError as error:
            raise of_gateway_error(error) from error
        secrets = (*secrets_in_headers(provider.headers), *([key] if len(key) >= SECRET_CHARS else []))
        asks_anthropic = lot.protocol is Protocol.ANTHROPIC
        headers = {
            **provider.headers,
            **(VERSION | dict(lot.headers) if asks_anthropic else {}),
            "accept": "application/json",
            "user-agent": "benchyard",
            **provider.key_headers(lot.protocol, key),
        }
        form = Protocol.ANTHROPIC if asks_anthropic else Protocol.OPENAI_RESPONSES
        async with httpx.AsyncClient(transport=upstream.transport(), timeout=TIMEOUT) as client:
            http = BatchHttp(client, lambda path: provider.url(form, path), headers, secrets)
            yield AnthropicBatches(http) if asks_anthropic else OpenAIBatches(http, ENDPOINTS[lot.protocol]), secrets

    def _of(self, lot: Lot) -> HttpUpstream:
        upstream = self._upstream(lot.provider)
        if isinstance(upstream, LiveUpstream):
            upstream = upstream.current
        if not isinstance(upstream, HttpUpstream):
            raise BatchTrouble(f"provider {lot.provider} cannot be used, or has no batches", acted=False, final=True)
        if not upstream.provider.kind.batches:
            title = upstream.provider.kind.title
            raise BatchTrouble(f"{title} has no batches of OpenAI's or Anthropic's form", acted=False, final=True)
        return upstream
