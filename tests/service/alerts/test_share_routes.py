"""Badges and feeds without a token: off at first, at addresses that open one thing each, and ended on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from orchestrator.alerts.feed import ATOM
from orchestrator.alerts.share_links import SharedResource, ShareLinks
from orchestrator.schedules.badge import COLOURS, badge_of, svg
from tests.service.schedules.test_routes import save, until_fires

if TYPE_CHECKING:
    from tests.served import Service

pytestmark = pytest.mark.anyio

LINKS = "/api/share-links"


async def links(service: Service, method: str) -> dict[str, Any]:
    answer = await service.client.request(method, LINKS)
    assert answer.status_code in (200, 204), answer.text
    return answer.json() if answer.content else {}


def addresses(shared: dict[str, Any]) -> list[str]:
    return [shared["feed_url"]] + [each[name] for each in shared["models"] for name in each if name.endswith("url")]


async def test_shared_renewed_and_ended(service: Service) -> None:
    for slug in ("demo-strong", "demo-weak"):
        await save(service, model_id=slug)
    service.clock.advance(3 * 3600)
    await until_fires(service, 18)
    assert await links(service, "GET") == {"enabled": False, "feed_url": None, "models": []}
    assert (await service.stranger.post(LINKS)).status_code == 401
    first = await links(service, "POST")
    assert await links(service, "GET") == first
    strong, weak = first["models"]
    badge = await service.stranger.get(strong["badge_url"])
    assert (badge.status_code, badge.json()["label"]) == (200, "demo-strong")
    image = await service.stranger.get(strong["badge_svg_url"])
    assert image.headers["content-type"].startswith("image/svg+xml")
    assert "demo-strong" in str(ET.fromstring(image.text).findtext("{http://www.w3.org/2000/svg}title"))
    feed = await service.stranger.get(weak["feed_url"])
    titles = [title.text or "" for title in ET.fromstring(feed.text).findall(f"{{{ATOM}}}entry/{{{ATOM}}}title")]
    assert len(titles) == 1
    assert titles[0].startswith("demo-weak:"), "the alerts of this model only"
    assert len(ET.fromstring((await service.stranger.get(first["feed_url"])).text).findall(f"{{{ATOM}}}entry")) == 2
    # a key opens what it was made for and nothing else
    key = strong["badge_url"].rsplit("/", 1)[1]
    for path in (f"badges/{weak['model_id']}/{key}", f"feeds/{strong['model_id']}/{key}", f"feed/{key}", f"badges/1/{key}x"):
        assert (await service.stranger.get(f"/shared/{path}")).status_code == 404
    second = await links(service, "POST")
    assert set(addresses(first)).isdisjoint(addresses(second))
    await expect(service, first, 404)
    await expect(service, second, 200)
    await links(service, "DELETE")
    await expect(service, second, 404)
    assert not (await links(service, "GET"))["enabled"]


async def expect(service: Service, shared: dict[str, Any], status: int) -> None:
    for address in addresses(shared):
        assert (await service.stranger.get(address)).status_code == status, address


def test_keys_are_long_and_differ() -> None:
    one, other = ShareLinks("one"), ShareLinks("other")
    keys = {each.key(shown, model) for each in (one, other) for shown in SharedResource for model in (None, 1, 11)}
    assert len(keys) == 2 * len(SharedResource) * 3
    assert {len(key) for key in keys} == {32}
    assert not one.opens("", SharedResource.ALL_ALERTS)
    assert not one.opens("ü", SharedResource.ALL_ALERTS)


@pytest.mark.parametrize("verdict", [None, *COLOURS])
def test_every_badge_can_be_drawn(verdict: str | None) -> None:
    badge = badge_of("a<b&c", {"estimate": 0.5, "low": 0.4, "high": 0.6}, verdict)
    assert "a<b&c" in "".join(ET.fromstring(svg(badge["label"], badge["message"], badge["color"])).itertext())
