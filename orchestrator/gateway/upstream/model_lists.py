"""The models that a provider lists: `GET /v1/models`, as answered by Anthropic, OpenAI and compatible servers."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from orchestrator.gateway.upstream.providers import Provider
from orchestrator.outbound.addresses import AddressRefused
from orchestrator.outbound.transports import PinnedTransport
from orchestrator.system.clock import Clock
from runner.contract.run_spec import Protocol

TIMEOUT_S = 20.0
MAX_BYTES = 16 << 20
MAX_PAGES = 50
MAX_NAME_CHARS = 150
ANTHROPIC_VERSION = "2023-06-01"


class ListFailed(Exception):
    """The list could not be fetched; the message says why, without the key."""


@dataclass(frozen=True)
class ListedModel:
    name: str
    display_name: str = ""


async def list_models(
    provider: Provider, env: Mapping[str, str], *, clock: Clock, tls: ssl.SSLContext | None = None
) -> list[ListedModel]:
    """All pages of a provider's list. Raises `ListFailed`."""
    key = ""
    try:
        key = "" if provider.list_without_key else provider.key.read(env)
        async with (
            asyncio.timeout(TIMEOUT_S),
            httpx.AsyncClient(
                transport=PinnedTransport(provider.origin[1], provider.address_rule, tls=tls, monotonic=clock.monotonic),
                timeout=TIMEOUT_S,
            ) as client,
        ):
            return await _pages(client, provider, key)
    except TimeoutError as error:
        raise ListFailed(f"no answer within {TIMEOUT_S:g} s") from error
    except (httpx.HTTPError, AddressRefused, OSError, ValueError) as error:
        message = f"{type(error).__name__}: {error}"
        raise ListFailed(message.replace(key, "[key]") if key else message) from error


async def _pages(client: httpx.AsyncClient, provider: Provider, key: str) -> list[ListedModel]:
    protocol = Protocol.ANTHROPIC if Protocol.ANTHROPIC in provider.protocols else Protocol.OPENAI_CHAT
    headers = {**provider.headers, "accept": "application/json", "accept-encoding": "identity", "user-agent": "benchyard"}
    query: dict[str, str] = {}
    if protocol is Protocol.ANTHROPIC:
        headers["anthropic-version"] = ANTHROPIC_VERSION
        query["limit"] = "1000"
    if key:
        headers |= {"x-api-key": key} if protocol is Protocol.ANTHROPIC else {"authorization": f"Bearer {key}"}
    by_name: dict[str, ListedModel] = {}
    for _ in range(MAX_PAGES):
        page = await _get(client, provider.url(protocol, "/v1/models"), headers, query)
        before = len(by_name)
        models = _models(page)
        for model in models:
            by_name.setdefault(model.name, model)
        last = page.get("last_id") or (models[-1].name if models else None)
        if not page.get("has_more") or not isinstance(last, str) or len(by_name) == before:
            return list(by_name.values())
        query["after_id" if protocol is Protocol.ANTHROPIC else "after"] = last
    raise ListFailed(f"the list has more than {MAX_PAGES} pages")


async def _get(client: httpx.AsyncClient, url: str, headers: dict[str, str], query: dict[str, str]) -> dict[str, object]:
    received = bytearray()
    async with client.stream("GET", url, headers=headers, params=query) as response:
        if response.status_code != httpx.codes.OK:
            raise ListFailed(f"the answer was {response.status_code}")
        async for piece in response.aiter_bytes():
            received += piece
            if len(received) > MAX_BYTES:
                raise ListFailed(f"the list is larger than {MAX_BYTES} bytes")
    try:
        page = json.loads(received)
    except RecursionError as error:
        raise ListFailed("the answer is not a list of models") from error
    if isinstance(page, list) and page:
        page = {"data": page}  # some servers send a bare list
    if not isinstance(page, dict) or not isinstance(page.get("data"), list):
        raise ListFailed("the answer is not a list of models")
    return page


def _models(page: Mapping[str, object]) -> list[ListedModel]:
    entries = page["data"]
    assert isinstance(entries, list)
    models = []
    for entry in entries:
        name = entry.get("id") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= MAX_NAME_CHARS:
            continue  # not something that a run could call
        title = entry.get("display_name") or entry.get("name") or ""
        models.append(ListedModel(name, title[:200] if isinstance(title, str) and title.isprintable() else ""))
    return models
