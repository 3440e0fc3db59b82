"""The models that a provider lists: `GET /v1/models`, as answered by Anthropic, OpenAI and compatible servers; for Amazon
Bedrock its two lists, of models and of inference profiles, which its control plane has at a host of its own."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import httpx

from orchestrator.gateway.upstream.connections.network_settings import proxies_of, tls_of
from orchestrator.gateway.upstream.kinds.table import Auth
from orchestrator.gateway.upstream.providers import Provider
from orchestrator.gateway.upstream.secrets.authorization import Credentials, credentials_of, one_line
from orchestrator.gateway.upstream.secrets.google_tokens import GoogleTokens, NoToken
from orchestrator.outbound.addresses import AddressRefused
from orchestrator.outbound.transports import PinnedTransport
from orchestrator.system.clock import Clock
from runner.contract.run_spec import Protocol

TIMEOUT_S = 20.0
MAX_BYTES = 16 << 20
MAX_PAGES = 50
MAX_NAME_CHARS = 150
ANTHROPIC_VERSION = "2023-06-01"
PROFILES = "/inference-profiles"
NOTHING: Mapping[str, str] = MappingProxyType({})


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
    if not provider.lists_models:
        raise ListFailed(f"{provider.kind.title} has no list of models: add them one by one")
    provider = _with_lists(provider)
    tls = tls_of(provider, env) if provider.has_own_tls else tls
    proxies = proxies_of(provider, env) if provider.proxy else None

    def transport(host: str) -> PinnedTransport:
        return PinnedTransport(host, provider.address_rule, tls=tls, proxies=proxies, monotonic=clock.monotonic)

    secrets: tuple[str, ...] = ()
    try:
        key = "" if provider.list_without_key else one_line(provider.kind, provider.key.read(env))
        secrets = (key,) if key else ()
        async with (
            asyncio.timeout(TIMEOUT_S),
            httpx.AsyncClient(transport=transport(provider.origin[1]), timeout=TIMEOUT_S) as client,
        ):
            protocol = Protocol.ANTHROPIC if Protocol.ANTHROPIC in provider.protocols else Protocol.OPENAI_CHAT
            credentials = await credentials_of(provider, protocol, key, GoogleTokens(transport, clock))
            secrets = (*secrets, *credentials.secrets)
            if provider.kind.auth is Auth.AWS:
                return await _bedrock(client, provider, credentials)
            return await _pages(client, provider, protocol, credentials)
    except TimeoutError as error:
        raise ListFailed(f"no answer within {TIMEOUT_S:g} s") from error
    except (httpx.HTTPError, AddressRefused, OSError, ValueError, RuntimeError, NoToken) as error:
        message = f"{type(error).__name__}: {error}"
        for secret in secrets:
            message = message.replace(secret, "[key]")
        raise ListFailed(message) from error


def _with_lists(provider: Provider) -> Provider:
    """Bedrock's lists are at another host than its models, of the same owner."""
    if provider.kind.auth is not Auth.AWS:
        return provider
    return replace(provider, base_url=provider.base_url.replace("bedrock-runtime", "bedrock", 1))


async def _pages(
    client: httpx.AsyncClient, provider: Provider, protocol: Protocol, credentials: Credentials
) -> list[ListedModel]:
    version = {"anthropic-version": ANTHROPIC_VERSION} if protocol is Protocol.ANTHROPIC else {}
    query = {"limit": "1000"} if protocol is Protocol.ANTHROPIC else {}
    by_name: dict[str, ListedModel] = {}
    for _ in range(MAX_PAGES):
        page = await _get(client, _with_query(provider.list_url, query), provider, credentials, version)
        before = len(by_name)
        models = _models(_listed(page, "data"))
        for model in models:
            by_name.setdefault(model.name, model)
        last = page.get("last_id") or (models[-1].name if models else None)
        if not page.get("has_more") or not isinstance(last, str) or len(by_name) == before:
            return list(by_name.values())
        query["after_id" if protocol is Protocol.ANTHROPIC else "after"] = last
    raise ListFailed(f"the list has more than {MAX_PAGES} pages")


async def _bedrock(client: httpx.AsyncClient, provider: Provider, credentials: Credentials) -> list[ListedModel]:
    """Models that write texts and can be called by their own name, then the profiles, by which newer ones are called."""
    page = await _get(client, provider.list_url, provider, credentials)
    models = [
        {"id": entry.get("modelId"), "name": entry.get("modelName")}
        for entry in _objects(_listed(page, "modelSummaries"))
        if "TEXT" in (entry.get("outputModalities") or ["TEXT"])
        and "ON_DEMAND" in (entry.get("inferenceTypesSupported") or ["ON_DEMAND"])
    ]
    token = ""
    for _ in range(MAX_PAGES):
        query = {"maxResults": "1000", **({"nextToken": token} if token else {})}
        page = await _get(client, _with_query(f"{provider.base_url}{PROFILES}", query), provider, credentials)
        models += [
            {"id": entry.get("inferenceProfileId"), "name": entry.get("inferenceProfileName")}
            for entry in _objects(_listed(page, "inferenceProfileSummaries"))
        ]
        token = str(page.get("nextToken") or "")
        if not token:
            break
    found = _models(models)
    if Protocol.ANTHROPIC in provider.protocols:
        found = [model for model in found if "anthropic." in model.name]
    return list({model.name: model for model in found}.values())


def _with_query(url: str, query: Mapping[str, str]) -> str:
    return str(httpx.URL(url).copy_merge_params(query))


async def _get(
    client: httpx.AsyncClient, url: str, provider: Provider, credentials: Credentials, further: Mapping[str, str] = NOTHING
) -> dict[str, object]:
    headers = {**provider.headers, "accept": "application/json", "accept-encoding": "identity", "user-agent": "benchyard"}
    headers |= {**further, **credentials.headers("GET", url)}
    received = bytearray()
    async with client.stream("GET", url, headers=headers) as response:
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
    if not isinstance(page, dict):
        raise ListFailed("the answer is not a list of models")
    return page


def _listed(page: Mapping[str, object], name: str) -> list[object]:
    entries = page.get(name)
    if not isinstance(entries, list):
        raise ListFailed("the answer is not a list of models")
    return entries


def _objects(entries: Sequence[object]) -> list[dict[str, Any]]:
    return [entry for entry in entries if isinstance(entry, dict)]


def _models(entries: Sequence[object]) -> list[ListedModel]:
    models = []
    for entry in _objects(entries):
        name = entry.get("id")
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= MAX_NAME_CHARS:
            continue  # not something that a run could call
        title = entry.get("display_name") or entry.get("name") or ""
        models.append(ListedModel(name, title[:200] if isinstance(title, str) and title.isprintable() else ""))
    return models
