"""Messages in the form of each receiver, with a link to what changed; e-mail through a real SMTP server."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from orchestrator.alerts.sending.mail import MailServer
from orchestrator.alerts.sending.messages import MessageFormat, body_for, mail_text
from orchestrator.alerts.sending.webhooks import AllowedAddresses, WebhookSender, new_secret
from orchestrator.alerts.tables import Alert, Webhook
from tests.manual_clock import START, ManualClock
from tests.service.alerts.webhook_receiver import Receiver

BASE = "https://lab.example/bench"
FLIPPED = [{"benchmark": "sample", "problem_id": f"<p{n}>", "before": 1.0, "now": 0.0} for n in range(7)]
HOSTILE = "m1: worse <!channel> [x](http://evil.example) @everyone"


def an_alert(title: str = HOSTILE) -> Alert:
    return Alert(id=7, uid="msg_7", model_id=1, kind="drift.worse", title=title, data={"flipped": FLIPPED}, at=START)


def a_hook(form: MessageFormat, url: str) -> Webhook:
    return Webhook(id=1, url=url, secret=new_secret(b"k" * 32), format=form.value, created_at=START)


def parsed(form: MessageFormat) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(body_for(form, an_alert(), BASE))
    return content


def test_slack_gets_text_blocks_and_a_button_and_no_command_of_a_title() -> None:
    content = parsed(MessageFormat.SLACK)
    assert "<!channel>" not in json.dumps(content)
    assert content["text"].endswith(f"<{BASE}/alerts/7|What changed>")
    section, flips, actions = content["blocks"]
    assert "&lt;!channel&gt;" in section["text"]["text"]
    assert "&lt;p0&gt;: 100 % → 0 %" in flips["text"]["text"]
    assert "and 2 more" in flips["text"]["text"]
    assert actions["elements"][0]["url"] == f"{BASE}/alerts/7"


def test_teams_gets_an_adaptive_card() -> None:
    (attachment,) = parsed(MessageFormat.TEAMS)["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert card["actions"] == [{"type": "Action.OpenUrl", "title": "What changed", "url": f"{BASE}/alerts/7"}]
    assert "[x](" not in card["body"][0]["text"]


def test_discord_gets_an_embed_that_wakes_nobody() -> None:
    content = parsed(MessageFormat.DISCORD)
    assert content["allowed_mentions"] == {"parse": []}
    (embed,) = content["embeds"]
    assert embed["url"] == f"{BASE}/alerts/7"
    assert len(embed["title"]) <= 256
    assert f"[What changed]({BASE}/alerts/7)" in embed["description"]


def test_a_title_with_line_breaks_adds_no_header() -> None:
    subject, text = mail_text(an_alert("worse\r\nBcc: all@example.org"), BASE)
    assert subject == "[Benchyard] worse Bcc: all@example.org"
    assert f"What changed: {BASE}/alerts/7" in text


@pytest.mark.anyio
@pytest.mark.parametrize("form", [MessageFormat.SLACK, MessageFormat.TEAMS, MessageFormat.DISCORD])
async def test_chats_get_their_body_unsigned(form: MessageFormat) -> None:
    sender = WebhookSender(ManualClock(), AllowedAddresses(["127.0.0.1"]).transport, base_url=BASE)
    async with Receiver() as receiver:
        assert (await sender.send(a_hook(form, receiver.url), an_alert())).error is None
        (taken,) = receiver.taken
        assert json.loads(taken.body) == parsed(form)
        assert "webhook-signature" not in taken.headers


@pytest.mark.anyio
async def test_programs_get_the_link_too() -> None:
    sender = WebhookSender(ManualClock(), AllowedAddresses(["127.0.0.1"]).transport, base_url=BASE)
    async with Receiver() as receiver:
        await sender.send(a_hook(MessageFormat.STANDARD, receiver.url), an_alert())
        assert json.loads(receiver.taken[0].body)["data"]["url"] == f"{BASE}/alerts/7"


class Inbox:
    """What the mail server took; refuses all if told so."""

    def __init__(self) -> None:
        self.taken: list[Envelope] = []
        self.answer = "250 taken"

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:
        self.taken.append(envelope)
        return self.answer


@contextmanager
def a_mail_server(inbox: Inbox, **options: Any) -> Iterator[int]:
    with socket.socket() as free:  # the controller connects to its own port, so it must know it
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    server = Controller(inbox, hostname="127.0.0.1", port=port, **options)
    server.start()
    try:
        yield port
    finally:
        server.stop()


async def send_mail(url: str) -> str | None:
    mail = MailServer.of(url, "bench@example.org")
    sender = WebhookSender(ManualClock(), AllowedAddresses([]).transport, base_url=BASE, mail=mail)
    result = await sender.send(a_hook(MessageFormat.EMAIL, "mailto:team@example.org"), an_alert())
    return result.error


@pytest.mark.anyio
async def test_e_mail_arrives_with_subject_link_and_the_same_id_in_every_try() -> None:
    inbox = Inbox()
    with a_mail_server(inbox) as port:
        assert await send_mail(f"smtp://127.0.0.1:{port}") is None
        inbox.answer = "451 busy"
        error = await send_mail(f"smtp://127.0.0.1:{port}")
    assert error is not None
    assert "451" in error
    first, second = (message_from_bytes(bytes(envelope.content or b""), policy=policy.default) for envelope in inbox.taken)
    assert (inbox.taken[0].mail_from, inbox.taken[0].rcpt_tos) == ("bench@example.org", ["team@example.org"])
    assert str(first["subject"]).startswith("[Benchyard] m1: worse")
    assert f"What changed: {BASE}/alerts/7" in first.get_content()
    assert first["message-id"] == second["message-id"]


@pytest.mark.anyio
@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
async def test_a_server_that_wants_a_password_gets_it() -> None:
    def check(_server: SMTP, _session: Session, _envelope: Envelope, _how: str, given: Any) -> AuthResult:
        return AuthResult(success=given == LoginPassword(b"ann", b"p@ss"), handled=False)

    inbox = Inbox()
    with a_mail_server(inbox, authenticator=check, auth_required=True, auth_require_tls=False) as port:
        assert await send_mail(f"smtp://ann:p%40ss@127.0.0.1:{port}") is None
        assert "535" in (await send_mail(f"smtp://ann:wrong@127.0.0.1:{port}") or "")
    assert len(inbox.taken) == 1


@pytest.mark.anyio
async def test_no_mail_server_is_an_error_that_says_what_to_do() -> None:
    sender = WebhookSender(ManualClock(), AllowedAddresses([]).transport, base_url=BASE)
    result = await sender.send(a_hook(MessageFormat.EMAIL, "mailto:team@example.org"), an_alert())
    assert "BENCHYARD_SMTP_URL" in (result.error or "")
