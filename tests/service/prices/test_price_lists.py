"""Models get their prices from lists; what people entered stays, and so do costs. On both databases."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.db.session import Database
from orchestrator.errors import Invalid, NotFound
from orchestrator.gateway.model_prices import prices_of
from orchestrator.gateway.providers.directory import ProviderDirectory
from orchestrator.models import queries as model_queries
from orchestrator.models.service import ModelCatalogue
from orchestrator.models.sync import ModelSync
from orchestrator.models.tables import LlmModel
from orchestrator.prices.service import PriceLists
from tests.manual_clock import ManualClock
from tests.served import Service
from tests.service.dashboard.test_pages import browser
from tests.service.models.test_sync import ENV, Lists
from tests.unit.prices.test_lists import GOOD

pytestmark = pytest.mark.anyio

BLANK: dict[str, Any] = {
    "slug": "s",
    "provider": "openai",
    "name": "gpt-5",
    "protocol": None,
    "params": {},
    **dict.fromkeys(("input_price", "output_price", "cached_input_price", "cache_write_price", "reasoning_price")),
    **dict.fromkeys(("batch_input_price", "batch_output_price", "long_prompt_prices", "context_tokens", "training_cutoff")),
}


def a_list(**models: dict[str, Any]) -> bytes:
    return json.dumps({name: GOOD | changes for name, changes in models.items()}).encode()


async def model(db: Database, slug: str) -> LlmModel:
    row = await db.read(lambda session: model_queries.by_slug(session, slug))
    assert row is not None
    return row


@pytest.fixture
def lists(database: Database, clock: ManualClock) -> PriceLists:
    return PriceLists(database, clock)


@pytest.fixture
def catalogue(database: Database, clock: ManualClock, lists: PriceLists) -> ModelCatalogue:
    return ModelCatalogue(database, clock, lists)


async def test_an_added_model_gets_what_the_list_says(catalogue: ModelCatalogue, database: Database) -> None:
    await catalogue.add(BLANK | {"slug": "haiku", "provider": "anthropic", "name": "claude-haiku-5-5", "context_tokens": 7})
    row = await model(database, "haiku")

    assert (row.input_price, row.output_price, row.cached_input_price, row.cache_write_price) == (0.1, 0.5, 0.01, 0.125)
    assert (row.batch_input_price, row.batch_output_price) == (0.05, 0.25)
    assert row.price_source is not None
    assert "Pricing" in row.price_source
    assert row.prices_entered_at is not None
    assert row.prices_entered_at.year == 2026
    assert row.context_tokens == 7, "what was given stays"
    prices = prices_of(row)
    assert prices is not None
    assert prices.long_prompts is not None
    assert prices.long_prompts.above_tokens == 100_000


async def test_a_price_of_a_person_wins_over_every_list(
    catalogue: ModelCatalogue, lists: PriceLists, database: Database
) -> None:
    await catalogue.add(BLANK | {"slug": "own", "input_price": 9.0, "output_price": 9.0})
    await catalogue.add(BLANK | {"slug": "listed"})
    await catalogue.add(BLANK | {"slug": "changed"})
    changed = await model(database, "changed")
    await catalogue.change(changed.id or 0, {"cached_input_price": 0.5})
    await catalogue.add(BLANK | {"slug": "cleared"})
    await catalogue.change((await model(database, "cleared")).id or 0, {"input_price": None, "output_price": None})

    update = await lists.update(a_list(**{"gpt-5": {}, "other": {}}), "a test")

    assert update.changed == ["listed"]
    assert (await model(database, "own")).input_price == 9.0
    listed = await model(database, "listed")
    assert (listed.input_price, listed.reasoning_price, listed.price_source) == (2.0, 12.0, "a test")
    assert listed.training_cutoff is not None, "known from the list before"
    assert ((await model(database, "changed")).input_price, changed.price_source is not None) == (1.25, True)
    assert (await model(database, "cleared")).input_price is None
    assert await lists.apply() == []

    back = await catalogue.use_list_price((await model(database, "own")).id or 0)
    assert (back.input_price, back.price_source) == (2.0, "a test")


async def test_a_synced_model_gets_its_price(lists: PriceLists, database: Database, clock: ManualClock) -> None:
    sync = ModelSync(
        database, clock, ProviderDirectory(ENV), Lists(openai=["gpt-5-2025-08-07", "unheard-of"]), price_lists=lists
    )
    await sync.run()

    assert (await model(database, "openai/gpt-5-2025-08-07")).output_price == 10
    assert (await model(database, "openai/unheard-of")).output_price is None


async def test_a_list_replaces_the_one_before_and_bad_lists_replace_nothing(lists: PriceLists) -> None:
    await lists.update(a_list(one={}, two={}), "first")
    await lists.update(a_list(two={"output_cost_per_token": 3e-05}), "second")
    for bad in (b"{", a_list(three={"mode": "embedding"}), a_list(three={"input_cost_per_token": "x"})):
        with pytest.raises(Invalid):
            await lists.update(bad, "bad")

    assert (await lists.find("openai", "two")).facts.output_price == 30
    with pytest.raises(NotFound, match="no list of prices"):
        await lists.find("openai", "one")


async def test_over_http(shared_service: Service) -> None:
    client = shared_service.client
    page = (await client.get("/api/prices", params={"limit": 5})).json()
    assert len(page["items"]) == 5
    second = (await client.get("/api/prices", params={"limit": 5, "after": page["next"]})).json()
    assert second["items"][0]["model"] != page["items"][0]["model"]
    anthropic = (await client.get("/api/prices", params={"provider": "anthropic"})).json()["items"]
    assert {entry["provider"] for entry in anthropic} == {"anthropic"}
    old = (await client.get("/api/prices/find", params={"provider": "openai", "model": "gpt-4.1"})).json()
    assert "days old" in old["price_warning"]
    assert (await client.get("/api/prices/find", params={"provider": "openai", "model": "none"})).status_code == 404

    added = await client.post("/api/models", json={"slug": "listed-41", "provider": "openai", "name": "gpt-4.1"})
    assert (added.json()["input_price"], added.json()["context_tokens"]) == (2.0, 1047576)
    assert "days old" in added.json()["price_warning"]
    quote = (await client.post("/api/quotes", json={"model_id": "listed-41", "sample_size": 2})).json()
    assert "days old" in quote["price_warning"]
    assert quote["price_warning"] in quote["sentence"]
    free = {"slug": "free", "provider": "openai", "name": "mine", "input_price": 0, "output_price": 0}
    await client.post("/api/models", json=free)
    shared_service.clock.advance(200 * 86400)
    assert (await client.get("/api/models/free")).json()["price_warning"] is None

    raw = a_list(**{"gpt-4.1": {}, "broken": {"input_cost_per_token": "much"}})
    updated = await client.put("/api/prices", content=raw, params={"source": "a list"})
    assert updated.json() == {
        "entries": 1,
        "changed": ["listed-41"],
        "left_out": {"broken": "input_cost_per_token is not a number"},
        "left_out_count": 1,
        "passed_over": 0,
    }
    fresh = (await client.get("/api/models/listed-41")).json()
    assert (fresh["price_source"], fresh["price_warning"], fresh["output_price"]) == ("a list", None, 10.0)
    assert (await client.put("/api/prices", content=b"x" * ((16 << 20) + 1))).status_code == 413
    assert (await client.post("/api/prices/use", json={"model": "demo-weak"})).status_code == 404


async def test_the_page_shows_lists_and_takes_one(shared_service: Service) -> None:
    async with browser(shared_service) as client:
        await client.post("/models", data={"slug": "paged", "provider": "openai", "name": "gpt-5-nano"})
        page = (await client.get("/models")).text
        assert "price older than 90 days" in page
        assert "Price lists" in page
        taken = await client.post(
            "/models/price-lists",
            data={"list": a_list(**{"gpt-5-nano": {}, "bad": {"mode": "chat", "input_cost_per_token": None}}).decode()},
        )
        assert "Prices taken: 1. Models changed here:" in taken.text
        assert "input_cost_per_token is missing" in taken.text
        assert "pasted on the models page" in taken.text
        assert (await client.post("/models/price-lists", data={"list": "<b>"})).status_code == 422
