"""Webhooks over HTTP: made, tried, given a new secret, watched, sent again, removed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from sqlmodel import Session

from orchestrator.alerts import queries
from orchestrator.alerts.sending.webhooks import sign
from orchestrator.alerts.tables import Alert
from tests.service.alerts.webhook_receiver import Receiver, Taken
from tests.service.schedules.test_routes import save, until_fires

if TYPE_CHECKING:
    from orchestrator.settings import Settings
    from tests.served import Service

pytestmark = pytest.mark.anyio

HOOKS = "/api/alerts/webhooks"


async def ask(service: Service, method: str, path: str, expect: int = 200, **fields: Any) -> Any:
    answer = await service.client.request(method, HOOKS + path, **fields)
    assert answer.status_code == expect, answer.text
    return answer.json() if answer.content else None


def signatures(taken: Taken, *secrets: str) -> list[str]:
    stamp = int(taken.headers["webhook-timestamp"])
    return [sign(secret, taken.headers["webhook-id"], stamp, taken.body) for secret in secrets]


async def test_the_life_of_a_webhook(service: Service) -> None:
    async with Receiver() as receiver:
        made = await ask(service, "POST", "", 201, json={"url": receiver.url})
        path, first = f"/{made['id']}", made["secret"]
        seen = await ask(service, "GET", path)
        assert "secret" not in seen
        assert (seen["url"], seen["old_secret_until"]) == (receiver.url, None)
        assert await ask(service, "POST", f"{path}/test") == {"delivered": True, "status": 200, "error": None}
        assert json.loads(receiver.taken[0].body)["type"] == "webhook.test"
        assert receiver.taken[0].headers["webhook-signature"].split() == signatures(receiver.taken[0], first)
        second = (await ask(service, "POST", f"{path}/rotate"))["secret"]
        await ask(service, "POST", f"{path}/test")
        assert receiver.taken[1].headers["webhook-signature"].split() == signatures(receiver.taken[1], second, first)
        third = await ask(service, "POST", f"{path}/rotate", json={"keep_old_s": 0})
        assert (third["old_secret_until"], len({first, second, third["secret"]})) == (None, 3)
        await ask(service, "POST", f"{path}/test")
        assert receiver.taken[2].headers["webhook-signature"].split() == signatures(receiver.taken[2], third["secret"])
        receiver.status = 500
        tried = await ask(service, "POST", f"{path}/test")
        assert tried == {"delivered": False, "status": 500, "error": "HTTP 500"}
        assert len({taken.headers["webhook-id"] for taken in receiver.taken}) == 4
        await ask(service, "DELETE", path, 204)
        for method, gone in (
            ("GET", ""),
            ("POST", "/test"),
            ("POST", "/rotate"),
            ("DELETE", ""),
            ("POST", "/deliveries/retry"),
        ):
            await ask(service, method, path + gone, 404)


async def test_what_was_given_up_can_be_sent_again(service: Service) -> None:
    async with Receiver() as receiver:
        receiver.status = 410
        path = f"/{(await ask(service, 'POST', '', 201, json={'url': receiver.url}))['id']}"
        await save(service)
        service.clock.advance(3 * 3600)
        await until_fires(service, 18)
        while not (dead := (await ask(service, "GET", f"{path}/deliveries?state=dead"))["items"]):
            pass
        assert (dead[0]["kind"], dead[0]["tries"], dead[0]["last_error"]) == ("schedule.missed", 1, "HTTP 410")
        assert "11 scheduled runs missed" in dead[0]["title"]
        assert (await ask(service, "GET", path))["deliveries"] == {"dead": 1}
        receiver.status = 200
        assert await ask(service, "POST", f"{path}/deliveries/retry", 202) == {"retried": 1}
        while (await ask(service, "GET", path))["deliveries"] != {"delivered": 1}:
            pass
        assert [taken.headers["webhook-id"] for taken in receiver.taken] == [dead[0]["uid"]] * 2


async def test_private_addresses_only_if_they_are_listed(new_settings: Callable[..., Settings]) -> None:
    from tests.served import served

    async with served(new_settings()) as service:
        for url in ("http://127.0.0.1:9/", "http://localhost/", "http://[::1]/", "https://10.1.2.3/x", "http://0x7f000001/"):
            problem = await ask(service, "POST", "", 422, json={"url": url})
            assert "BENCHYARD_WEBHOOK_ALLOW" in problem["detail"], problem
        problem = await ask(service, "POST", "", 422, json={"url": "http://169.254.169.254/latest"})
        assert "metadata" in problem["detail"]
        for url in ("https://hooks.example/\n", "https://hooks.example:99999/", "https://hooks.example/\x1b[2J"):
            await ask(service, "POST", "", 422, json={"url": url})
        await ask(service, "POST", "", 201, json={"url": "https://no-such-name.invalid/"})


async def test_an_alert_is_acknowledged_once_and_reopened(service: Service) -> None:
    alert_id = await stored_alert(service, 901)
    first = (await service.client.post(f"/api/alerts/{alert_id}/acknowledge")).json()
    again = (await service.client.post(f"/api/alerts/{alert_id}/acknowledge")).json()
    assert first["acknowledged_by"]
    assert again["acknowledged_at"] == first["acknowledged_at"]
    listed = (await service.client.get("/api/alerts", params={"acknowledged": False})).json()["items"]
    assert alert_id not in [item["id"] for item in listed]
    assert (await service.client.post(f"/api/alerts/{alert_id}/reopen")).json()["acknowledged_at"] is None
    assert (await service.client.post("/api/alerts/999999/acknowledge")).status_code == 404


async def test_a_muted_model_sends_nothing_and_keeps_its_alerts(service: Service) -> None:
    async with Receiver() as receiver:
        hook = (await ask(service, "POST", "", 201, json={"url": receiver.url}))["id"]
        muted = await service.client.put("/api/alerts/mutes/1", json={"hours": 4})
        assert muted.status_code == 200, muted.text
        quiet = await stored_alert(service, 902)
        assert (await service.client.get(f"/api/alerts/{quiet}")).json()["muted"] is True
        assert [row["model_id"] for row in (await service.client.get("/api/alerts/mutes")).json()["items"]] == [1]
        assert (await service.client.delete("/api/alerts/mutes/1")).status_code == 204
        assert (await service.client.delete("/api/alerts/mutes/1")).status_code == 404
        loud = await stored_alert(service, 903)
        sent = (await ask(service, "GET", f"/{hook}/deliveries"))["items"]
        assert [row["alert_id"] for row in sent] == [loud]
        await ask(service, "DELETE", f"/{hook}", 204)


async def test_e_mail_needs_one_address_and_a_mail_server(service: Service) -> None:
    for url, word in (("not one", "e-mail address"), ("mailto:team@example.org", "BENCHYARD_SMTP_URL")):
        answer = await service.client.post("/api/alerts/webhooks", json={"url": url, "format": "email"})
        assert answer.status_code == 422
        assert word in answer.text
    assert (await service.client.post("/api/alerts/webhooks", json={"url": "mailto:a@b.org"})).status_code == 422


async def stored_alert(service: Service, number: int) -> int:
    def add(session: Session) -> int:
        alert = Alert(
            uid=f"msg_stored_{number}", model_id=1, kind="drift.worse", title="worse", data={}, at=service.clock.now()
        )
        queries.add(session, alert)
        return alert.id or 0

    return await service.services.db.write(add)
