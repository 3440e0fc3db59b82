"""One try to post an alert to an address: signed, quick, without redirects, and never to an address that nobody allowed."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import httpx

from orchestrator.alerts.tables import Alert, Webhook
from orchestrator.alerts.webhook_message import message, secrets_of
from orchestrator.outbound.addresses import AddressRule, refusal, resolve
from orchestrator.outbound.transports import PinnedTransport
from orchestrator.system.clock import Clock

TIMEOUT_S = 10.0
LOOK_UP_S = 3.0
GONE = 410
SETTING = "BENCHYARD_WEBHOOK_ALLOW"

Transports = Callable[[str], httpx.AsyncBaseTransport]
"""What connects to a host of that name, and refuses addresses that nobody may call."""


@dataclass(frozen=True)
class Result:
    status: int | None = None
    """What the address answered, if it did."""
    error: str | None = None
    hopeless: bool = False
    """The address said that it is gone for good."""


class AllowedAddresses:
    """Public addresses, and of the private ones those that the operator listed by host or network.

    Link-local and metadata addresses are refused even if they are listed.
    """

    def __init__(self, entries: Iterable[str], setting: str = SETTING) -> None:
        """`setting` is where the entries come from, and where more can be listed."""
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
            if refusal(address, allow_private=True) is None and (listed or any(ip in each for each in self._networks)):
                return None
            if (why := refusal(address, allow_private=False)) is None:
                return None
            if refusal(address, allow_private=True) is None:
                return (
                    f"it is a private address; {self._setting} lists the hosts and networks that may be called all the same"
                )
            return why

        return why_not

    def transport(self, host: str) -> PinnedTransport:
        return PinnedTransport(host, self.judge(host))

    async def refusal(self, url: str) -> str | None:
        """Why it may not be called, as far as can be said now; a name that has no address today is not refused."""
        try:
            host = httpx.URL(url).host
        except httpx.InvalidURL as error:
            return f"it is not an address: {error}"
        try:
            async with asyncio.timeout(LOOK_UP_S):
                addresses = await resolve(host, 0)
        except (OSError, UnicodeError):  # time is up, or there is no such name: the deliveries will say so
            return None
        reasons = ((address, self.judge(host)(address)) for address in addresses)
        return next((f"{host} is {address}: {why}" for address, why in reasons if why), None)


class WebhookSender:
    def __init__(self, clock: Clock, transport: Transports) -> None:
        self._clock = clock
        self._transport = transport

    async def send(self, webhook: Webhook, alert: Alert) -> Result:
        now = self._clock.now()
        body, headers = message(alert, secrets_of(webhook, now), now)
        try:
            url = httpx.URL(webhook.url)
            async with (
                asyncio.timeout(TIMEOUT_S),
                httpx.AsyncClient(transport=self._transport(url.host), timeout=TIMEOUT_S, follow_redirects=False) as client,
                client.stream("POST", url, content=body, headers=headers) as answer,
            ):
                status = answer.status_code
        except Exception as error:  # unreachable, refused, no address, too slow: all the same to us, and written down
            return Result(error=f"{type(error).__name__}: {error}".rstrip(": ")[:500])
        if 200 <= status < 300:
            return Result(status)
        return Result(status, f"it answered {status}", hopeless=status == GONE)
