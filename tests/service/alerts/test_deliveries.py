"""Alerts reach their addresses: signed, in order, again and again, and never without end."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from sqlmodel import Session

from orchestrator.alerts import queries
from orchestrator.alerts.feed import ATOM, atom
from orchestrator.alerts.sending import deliveries as module
from orchestrator.alerts.sending.deliveries import Deliveries, wait_after
from orchestrator.alerts.sending.webhooks import AllowedAddresses, WebhookSender, message, new_secret, sign
from orchestrator.alerts.tables import Alert, Webhook, WebhookDelivery
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.settings import Settings
from tests.manual_clock import START
from tests.service.alerts.webhook_receiver import Receiver
from tests.service.schedules.simulated_schedules import ScheduleWorld

pytestmark = pytest.mark.anyio

SECRET = new_secret(b"k" * 32)


def an_alert(number: int, model_id: int = 1, **changed: Any) -> Alert:
    values = {"kind": "drift.worse", "title": f"alert <{number}>", "data": {"number": number}, "at": START, **changed}
    return Alert(uid=f"msg_{number}", model_id=model_id, **values)


class Post:
    """A webhook, somebody who delivers, and a receiver."""

    def __init__(self, world: ScheduleWorld, receiver: Receiver, leadership: Leadership, model_id: int) -> None:
        self.world, self.receiver, self.model_id = world, receiver, model_id
        sender = WebhookSender(world.clock, AllowedAddresses(["127.0.0.1", "169.254.0.0/16", "fe80::/10"]).transport)
        self.deliveries = Deliveries(world.db, leadership, world.clock, random.Random(1), sender)

    async def hook(self, **changed: Any) -> int:
        def add(session: Session) -> int:
            row = Webhook(**{"url": self.receiver.url, "secret": SECRET, "created_at": START, **changed})
            session.add(row)
            session.flush()
            return row.id or 0

        return await self.world.db.write(add)

    async def alert(self, number: int) -> bool:
        return await self.world.db.write(lambda s: queries.add(s, an_alert(number, self.model_id)))

    async def go(self) -> None:
        while await self.deliveries.round():
            pass

    async def row(self, hook: int, alert_id: int) -> WebhookDelivery:
        found = await self.world.db.read(lambda s: queries.delivery(s, hook, alert_id))
        assert found is not None
        return found


@asynccontextmanager
async def a_post(world: ScheduleWorld) -> AsyncIterator[Post]:
    model_id = await world.add()
    leadership, _ = await world.boot()
    async with Receiver() as receiver:
        yield Post(world, receiver, leadership, model_id)


async def test_signed_and_in_order(world: ScheduleWorld) -> None:
    async with a_post(world) as post:
        await post.hook()
        for number in range(3):
            assert await post.alert(number)
        assert not await post.alert(1), "an alert with the same id is the same alert"
        await post.go()
        assert [taken.headers["webhook-id"] for taken in post.receiver.taken] == ["msg_0", "msg_1", "msg_2"]
        taken = post.receiver.taken[1]
        # the signature as a receiver computes it
        signed = f"{taken.headers['webhook-id']}.{taken.headers['webhook-timestamp']}.".encode() + taken.body
        expected = base64.b64encode(hmac.new(b"k" * 32, signed, hashlib.sha256).digest()).decode()
        assert taken.headers["webhook-signature"] == f"v1,{expected}"
        body = json.loads(taken.body)
        assert (body["type"], body["data"]["number"], body["data"]["title"]) == ("drift.worse", 1, "alert <1>")
        await post.go()
        assert len(post.receiver.taken) == 3


async def test_a_receiver_that_is_down_for_ten_minutes(world: ScheduleWorld) -> None:
    async with a_post(world) as post:
        hook = await post.hook()
        post.receiver.status = 503
        for number in range(3):
            await post.alert(number)
        for _ in range(20):
            await post.go()
            world.clock.advance(30)
        tries = len(post.receiver.taken)
        assert 4 <= tries <= 9, "with growing distance"
        assert {taken.headers["webhook-id"] for taken in post.receiver.taken} == {"msg_0"}, "in order: the first is first"
        post.receiver.status = 200
        post.receiver.taken.clear()
        for _ in range(30):
            world.clock.advance(30)
            await post.go()
        assert [taken.headers["webhook-id"] for taken in post.receiver.taken] == ["msg_0", "msg_1", "msg_2"]
        assert (await post.row(hook, 1)).state == "delivered"


async def test_nobody_listens(world: ScheduleWorld) -> None:
    async with a_post(world) as post:
        hook = await post.hook(url="http://127.0.0.1:9/")
        await post.alert(0)
        await post.go()
        row = await post.row(hook, 1)
        assert (row.state, row.tries) == ("pending", 1)
        assert row.last_error
        assert row.not_before > world.clock.now()


async def test_dead_letters_are_seen_and_do_not_block(world: ScheduleWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TRIES", 3)
    async with a_post(world) as post:
        hook = await post.hook()
        await post.alert(0)
        await post.alert(1)
        post.receiver.status = 500
        for _ in range(3):
            await post.go()
            world.clock.advance(3600)
        dead = await world.db.read(lambda s: queries.deliveries(s, hook, state="dead", limit=10))
        assert [(row.alert_id, row.tries, row.last_error) for row, _ in dead] == [(1, 3, "HTTP 500")]
        post.receiver.status = 200
        await post.go()
        assert post.receiver.taken[-1].headers["webhook-id"] == "msg_1"


async def test_an_address_that_is_gone_is_given_up(world: ScheduleWorld) -> None:
    async with a_post(world) as post:
        hook = await post.hook()
        post.receiver.status = 410
        await post.alert(0)
        await post.go()
        assert (await post.row(hook, 1)).state == "dead"


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest", "http://[fe80::1]/", "http://0.0.0.0/"])
async def test_metadata_addresses_are_never_called(world: ScheduleWorld, url: str) -> None:
    async with a_post(world) as post:
        hook = await post.hook(url=url)
        await post.alert(0)
        await post.go()
        assert "AddressRefused" in ((await post.row(hook, 1)).last_error or "")


async def test_a_new_secret_signs_beside_the_old_one(world: ScheduleWorld) -> None:
    async with a_post(world) as post:
        newer = new_secret(b"n" * 32)
        until = START + timedelta(hours=1)
        await post.hook(secret=newer, previous_secret=SECRET, previous_until=until)
        await post.alert(0)
        await post.go()
        world.clock.advance(3600)
        await post.alert(1)
        await post.go()
        for taken, secrets in zip(post.receiver.taken, [[newer, SECRET], [newer]], strict=True):
            stamp = int(taken.headers["webhook-timestamp"])
            wanted = [sign(secret, taken.headers["webhook-id"], stamp, taken.body) for secret in secrets]
            assert taken.headers["webhook-signature"].split() == wanted


JUDGED = [
    ([], "hook.example", "10.0.0.5", "BENCHYARD_WEBHOOK_ALLOW"),
    ([], "hook.example", "127.0.0.1", "BENCHYARD_WEBHOOK_ALLOW"),
    ([], "hook.example", "::1", "BENCHYARD_WEBHOOK_ALLOW"),
    ([], "hook.example", "fd12::1", "BENCHYARD_WEBHOOK_ALLOW"),
    ([], "hook.example", "::ffff:10.0.0.5", "BENCHYARD_WEBHOOK_ALLOW"),
    ([], "hook.example", "8.8.8.8", None),
    (["10.0.0.0/8"], "hook.example", "10.0.0.5", None),
    (["10.0.0.0/8"], "hook.example", "192.168.0.5", "BENCHYARD_WEBHOOK_ALLOW"),
    (["Hook.Example"], "hook.example", "192.168.0.5", None),
    (["hook.example"], "other.example", "192.168.0.5", "BENCHYARD_WEBHOOK_ALLOW"),
    (["hook.example", "0.0.0.0/0"], "hook.example", "169.254.169.254", "link-local or metadata"),
    (["::/0"], "hook.example", "fd00:ec2::254", "link-local or metadata"),
    (["0.0.0.0/0"], "hook.example", "224.0.0.1", "not the address of a host"),
]


@pytest.mark.parametrize(("allowed", "host", "address", "says"), JUDGED)
def test_which_addresses_may_be_called(allowed: list[str], host: str, address: str, says: str | None) -> None:
    found = AllowedAddresses(allowed).judge(host)(address)
    assert found is None if says is None else found is not None and says in found


@pytest.mark.parametrize("given", ["10.0.0.1/8", "a b", "http://x", "*", "1.2.3"])
def test_a_list_that_makes_no_sense_is_refused_at_the_start(given: str) -> None:
    with pytest.raises(ValueError, match="neither a host's name nor a network"):
        Settings(webhook_allow=given)


async def test_a_redirect_is_not_followed(world: ScheduleWorld) -> None:
    async with a_post(world) as post:
        hook = await post.hook()
        post.receiver.status = 302
        await post.alert(0)
        await post.go()
        assert len(post.receiver.taken) == 1
        assert (await post.row(hook, 1)).last_error == "HTTP 302"


async def test_only_alerts_of_its_model(world: ScheduleWorld) -> None:
    other = await world.add("other")
    async with a_post_for(world, other) as post:
        await post.hook(model_id=other + 1)
        await post.alert(0)
        await post.go()
        assert post.receiver.taken == []


@asynccontextmanager
async def a_post_for(world: ScheduleWorld, model_id: int) -> AsyncIterator[Post]:
    await world.add()
    leadership, _ = await world.boot()
    async with Receiver() as receiver:
        yield Post(world, receiver, leadership, model_id)


def test_the_example_of_the_standard() -> None:
    """The vector that Standard Webhooks' own libraries are tested with."""
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    found = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_waits_grow_and_end() -> None:
    rng = random.Random(1)
    waits = [wait_after(tries, rng) for tries in range(1, 40)]
    assert timedelta(seconds=4) <= waits[0] <= timedelta(seconds=6)
    assert max(waits) <= timedelta(minutes=36)
    assert timedelta(hours=8) < sum(waits, timedelta()) < timedelta(hours=24)


def test_the_feed_is_atom() -> None:
    alerts = [an_alert(2, run_id="r2", title="bad \x00 & <b>"), an_alert(1)]
    for alert in alerts:
        alert.id = 1
    tree = ET.fromstring(atom(alerts, "http://here", START))
    titles = [entry.findtext(f"{{{ATOM}}}title") for entry in tree.iter(f"{{{ATOM}}}entry")]
    assert titles == ["bad  & <b>", "alert <1>"]
    assert tree.findtext(f"{{{ATOM}}}updated") == START.isoformat()
    assert ET.fromstring(atom([], "http://here", START)).tag == f"{{{ATOM}}}feed"


def test_the_message_is_small_and_plain() -> None:
    body, headers = message(an_alert(1, id=5), [SECRET], START, "http://bench.example")
    assert json.loads(body)["data"]["alert_id"] == 5
    assert SECRET not in body.decode() + str(headers)
