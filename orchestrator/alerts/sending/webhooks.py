"""Sends an alert to its receiver once: posted in the form of a chat or signed according to Standard Webhooks
(standardwebhooks.com), without redirects and only to allowed addresses, or by e-mail."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ipaddress
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

import httpx

from orchestrator.alerts.sending.mail import SETTINGS, MailRefused, MailServer
from orchestrator.alerts.sending.messages import MessageFormat, body_for, link
from orchestrator.alerts.tables import Alert, Webhook
from orchestrator.outbound.addresses import AddressRule, refusal, resolve
from orchestrator.outbound.transports import PinnedTransport
from orchestrator.system.clock import Clock

TIMEOUT_S = 10.0
LOOK_UP_S = 3.0
GONE = 410
SETTING = "BENCHYARD_WEBHOOK_ALLOW"

Transports = Callable[[str], httpx.AsyncBaseTransport]
"""Creates the transport to a host, which refuses forbidden addresses."""


@dataclass(frozen=True)
class DeliveryResult:
    status: int | None = None
    """The response status, if there was a response."""
    error: str | None = None
    is_gone: bool = False
    """The address responded that it is permanently gone."""


class AllowedAddresses:
    """Public addresses, and private ones that the operator listed by host or network.

    Link-local and metadata addresses are refused even if they are listed.
    """

    def __init__(self, entries: Iterable[str], setting: str = SETTING) -> None:
        """`setting` names the setting that lists the entries."""
        self._setting = setting
        self._hosts: set[str] = set()
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        for entry in entries:
            try:
                self._networks.append(ipaddress.ip_network(entry))
            except ValueError:
                self._hosts.add(entry.lower())

    def judge(self, host: str) -> AddressRule:
        listed = host.lower() in self._hosts

        def why_not(address: str) -> str | None:
            ip = ipaddress.ip_address(address.partition("%")[0])
            if refusal(address, allow_private=True) is None and (listed or any(ip in network for network in self._networks)):
                return None
            if (why := refusal(address, allow_private=False)) is None:
                return None
            if refusal(address, allow_private=True) is None:
                return f"it is a private address; {self._setting} lists the private hosts and networks that may be called"
            return why

        return why_not

    def transport(self, host: str) -> PinnedTransport:
        return PinnedTransport(host, self.judge(host))

    async def refusal(self, url: str) -> str | None:
        """Why the URL may not be called, or None. A name that does not resolve now is not refused."""
        try:
            host = httpx.URL(url).host
        except httpx.InvalidURL as error:
            return f"it is not an address: {error}"
        try:
            async with asyncio.timeout(LOOK_UP_S):
                addresses = await resolve(host, 0)
        except (OSError, UnicodeError):  # timeout, or unknown name: the deliveries will report it
            return None
        reasons = ((address, self.judge(host)(address)) for address in addresses)
        return next((f"{host} is {address}: {why}" for address, why in reasons if why), None)


class WebhookSender:
    def __init__(
        self,
        clock: Clock,
        transport: Transports,
        *,
        base_url: str = "http://localhost:8000",
        mail: MailServer | None = None,
    ) -> None:
        """`base_url` is where people open pages: messages link there."""
        self._clock = clock
        self._transport = transport
        self._base_url = base_url
        self._mail = mail

    @property
    def can_mail(self) -> bool:
        return self._mail is not None

    async def send(self, webhook: Webhook, alert: Alert) -> DeliveryResult:
        now = self._clock.now()
        form = MessageFormat(webhook.format)
        if form is MessageFormat.EMAIL:
            return await self._send_mail(webhook, alert)
        if form is MessageFormat.STANDARD:
            body, headers = message(alert, secrets_of(webhook, now), now, self._base_url)
        else:
            body, headers = body_for(form, alert, self._base_url), CHAT_HEADERS
        try:
            url = httpx.URL(webhook.url)
            async with (
                asyncio.timeout(TIMEOUT_S),
                httpx.AsyncClient(transport=self._transport(url.host), timeout=TIMEOUT_S, follow_redirects=False) as client,
                client.stream("POST", url, content=body, headers=headers) as answer,
            ):
                status = answer.status_code
        except Exception as error:  # unreachable, refused, unresolved, too slow: all are recorded the same way
            return DeliveryResult(error=f"{type(error).__name__}: {error}".rstrip(": ")[:500])
        if 200 <= status < 300:
            return DeliveryResult(status)
        return DeliveryResult(status, f"HTTP {status}", is_gone=status == GONE)

    async def _send_mail(self, webhook: Webhook, alert: Alert) -> DeliveryResult:
        if self._mail is None:
            return DeliveryResult(error=f"no mail server is configured: set {SETTINGS}")
        try:
            await self._mail.send(webhook.url.removeprefix("mailto:"), alert, self._base_url)
        except MailRefused as error:
            return DeliveryResult(error=str(error))
        return DeliveryResult()


CHAT_HEADERS = {"content-type": "application/json", "user-agent": "benchyard"}
PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret(entropy: bytes) -> str:
    """A signing secret from random bytes."""
    return PREFIX + base64.b64encode(entropy).decode()


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def secrets_of(webhook: Webhook, now: datetime) -> list[str]:
    """The secrets that sign now: its own, and the previous one until `previous_until`."""
    if webhook.previous_secret and webhook.previous_until and now < webhook.previous_until:
        return [webhook.secret, webhook.previous_secret]
    return [webhook.secret]


def message(alert: Alert, secrets: list[str], now: datetime, base_url: str) -> tuple[bytes, dict[str, str]]:
    """Body and headers. The id is the same in all tries, so that receivers can deduplicate."""
    content = {
        "type": alert.kind,
        "timestamp": alert.at.isoformat(),
        "data": {
            **alert.data,
            "title": alert.title,
            "alert_id": alert.id,
            "model_id": alert.model_id,
            "url": link(alert, base_url),
        },
    }
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    timestamp = int(now.timestamp())
    headers = {
        "content-type": "application/json",
        "user-agent": "benchyard",
        "webhook-id": alert.uid,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(sign(secret, alert.uid, timestamp, body) for secret in secrets),
    }
    return body, headers
