"""The catalogue follows the providers' lists and forgets nothing."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
from typing import Any

import pytest
from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.gateway.providers.directory import ProviderDirectory
from orchestrator.gateway.upstream.model_lists import ListedModel, ListFailed, list_models
from orchestrator.gateway.upstream.providers import Provider, providers_from_env
from orchestrator.models import queries as model_queries
from orchestrator.models.sync import ModelSync, slug_of
from orchestrator.models.tables import LlmModel
from orchestrator.system.clock import SystemClock
from tests.manual_clock import ManualClock
from tests.rows import a_model

pytestmark = pytest.mark.anyio

ENV = {"OPENAI_API_KEY": "k"}


class Lists:
    """What the providers say; None is a failure."""

    def __init__(self, **lists: list[str] | None) -> None:
        self.lists = lists

    async def __call__(self, provider: Provider) -> list[ListedModel]:
        names = self.lists[provider.name]
        if names is None:
            raise ListFailed("no answer")
        return [ListedModel(name, f"The {name}") for name in names]


async def rows(db: Database) -> dict[str, LlmModel]:
    found = await db.read(lambda session: model_queries.page(session, limit=100, with_archived=True))
    return {row.slug: row for row in found}


async def test_models_come_go_and_come_back(database: Database, clock: ManualClock) -> None:
    lists = Lists(openai=["GPT X", "gpt-y"])
    sync = ModelSync(database, clock, ProviderDirectory(ENV), lists)
    assert (await sync.run()).added == ["openai/gpt-x", "openai/gpt-y"]
    assert (await sync.run()).added == []
    first = (await rows(database))["openai/gpt-x"]
    assert (first.name, first.provider, first.protocol, first.display_name) == (
        "GPT X",
        "openai",
        "openai_chat",
        "The GPT X",
    )
    lists.lists = {"openai": ["gpt-y", "gpt-z"]}
    clock.advance(60)
    result = await sync.run()
    assert (result.added, result.missing, result.returned) == (["openai/gpt-z"], ["openai/gpt-x"], [])
    gone = (await rows(database))["openai/gpt-x"]
    assert (gone.id, gone.missing_since) == (first.id, clock.now())
    lists.lists = {"openai": ["GPT X", "gpt-y", "gpt-z"]}
    assert (await sync.run()).returned == ["openai/gpt-x"]
    assert (await rows(database))["openai/gpt-x"].missing_since is None


@pytest.mark.parametrize("listed", [None, []], ids=["fails", "empty"])
async def test_a_provider_that_cannot_be_asked_changes_nothing(
    listed: list[str] | None, database: Database, clock: ManualClock
) -> None:
    lists = Lists(openai=["a"])
    sync = ModelSync(database, clock, ProviderDirectory(ENV), lists)
    await sync.run()
    lists.lists = {"openai": listed}
    result = await sync.run()
    assert result.missing == []
    assert result.failed == ({} if listed == [] else {"openai": "no answer"})


async def test_what_people_entered_and_removed_stays_so(database: Database, clock: ManualClock) -> None:
    def seed(session: Session) -> None:
        session.add(a_model("mine", provider="openai", name="gpt-y", input_price=2.0))
        session.add(a_model("alias", provider="openai", name="gpt-latest"))
        session.add(a_model("openai/old~3", provider="openai", name="old", archived_at=clock.now()))

    await database.write(seed)
    result = await ModelSync(database, clock, ProviderDirectory(ENV), Lists(openai=["gpt-y", "old"])).run()
    assert (result.added, result.missing) == ([], [])
    assert (await rows(database))["mine"].input_price == 2.0


async def test_nobody_is_asked_when_no_provider_is_set_up(database: Database, clock: ManualClock) -> None:
    sync = ModelSync(database, clock, ProviderDirectory({}), Lists())
    await sync.run_in_background()
    assert (await sync.run()).providers == []


@pytest.mark.parametrize(("name", "slug"), [("a/B:c", "p/a/b:c"), ("ü x", "p/-x"), ("x" * 300, "p/" + "x" * 197)])
def test_slugs(name: str, slug: str) -> None:
    assert slug_of("p", name) == slug


class ListServer:
    """Answers `/v1/models` in pages and notes who asked."""

    def __init__(self, pages: dict[str, Any], status: int = 200) -> None:
        self.pages, self.status = pages, status
        self.asked: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.asked.append(head.lower())
            page = next((page for word, page in self.pages.items() if word in head.split("\r\n", 1)[0]), {})
            body = page if isinstance(page, bytes) else json.dumps(page).encode()
            form = "content-encoding: gzip\r\n" if body.startswith(b"\x1f\x8b") else ""
            framing = f"{form}content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            writer.write(f"HTTP/1.1 {self.status} X\r\n{framing}".encode() + body)

    async def lists(self, **env: str) -> list[ListedModel]:
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            env = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}", "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", **env}
            name = "anthropic" if "ANTHROPIC_API_KEY" in env else "openai"
            return await list_models(providers_from_env(env)[name], env, clock=SystemClock())


async def test_a_list_in_pages_with_the_key() -> None:
    first = {"data": [{"id": "a", "display_name": "A"}, {"id": 7}, {"id": "b\n"}], "has_more": True, "last_id": "a"}
    server = ListServer({"after_id=a": {"data": [{"id": "c"}], "has_more": False}, "/v1/models": first})
    assert await server.lists(ANTHROPIC_API_KEY="canary") == [ListedModel("a", "A"), ListedModel("c")]
    assert all("x-api-key: canary" in head for head in server.asked)


async def test_a_list_in_pages_as_openai_has_them() -> None:
    first = {"data": [{"id": "a"}, {"id": "b"}], "has_more": True}
    server = ListServer({"after=b": {"data": [{"id": "c"}], "has_more": False}, "/v1/models": first})
    assert [each.name for each in await server.lists(OPENAI_API_KEY="canary")] == ["a", "b", "c"]


async def test_a_server_that_knows_no_pages_is_asked_twice_at_most() -> None:
    server = ListServer({"/v1/models": {"data": [{"id": "a"}], "has_more": True, "last_id": "a"}})
    assert await server.lists(OPENAI_API_KEY="canary") == [ListedModel("a")]
    assert len(server.asked) == 2


async def test_a_list_without_end_is_no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not in the part of it that was read is not gone."""
    monkeypatch.setattr("orchestrator.gateway.upstream.model_lists.MAX_PAGES", 2)
    pages = {f"after={name}": {"data": [{"id": name * 2}], "has_more": True} for name in ("aa", "a")}
    server = ListServer({**pages, "/v1/models": {"data": [{"id": "a"}], "has_more": True}})
    with pytest.raises(ListFailed, match="pages"):
        await server.lists(OPENAI_API_KEY="canary")


@pytest.mark.parametrize("page", [[{"id": "a"}], gzip.compress(b'{"data": [{"id": "a"}]}')], ids=["bare", "compressed"])
async def test_other_forms_of_a_list(page: Any) -> None:
    assert await ListServer({"/v1/models": page}).lists(OPENAI_API_KEY="canary") == [ListedModel("a")]


@pytest.mark.parametrize("without", ["", "1"])
async def test_a_public_list_is_asked_for_without_the_key(without: str) -> None:
    server = ListServer({"/v1/models": {"data": [{"id": "a"}]}})
    assert await server.lists(OPENAI_API_KEY="canary", BENCHYARD_PROVIDER_OPENAI_LIST_WITHOUT_KEY=without)
    assert ("authorization" in server.asked[0]) is (not without)


@pytest.mark.parametrize(("status", "page"), [(500, {}), (200, {}), (200, {"data": 3}), (200, []), (200, b"[" * 99999)])
async def test_an_answer_that_is_no_list(status: int, page: Any) -> None:
    with pytest.raises(ListFailed):
        await ListServer({"/v1/models": page}, status).lists(OPENAI_API_KEY="canary")
