"""Delivers alerts to webhooks: in order for each address, with a limited number of retries.

An alert is marked as delivered after the address accepted it; after a crash in between, it is sent again under the same id.
A delivery that ran out of tries stays visible as dead and can be sent again by hand.
"""

from __future__ import annotations

import asyncio
import random
from datetime import datetime, timedelta

import structlog
from sqlmodel import Session

from orchestrator.alerts import queries
from orchestrator.alerts.sending.webhooks import DeliveryResult, WebhookSender
from orchestrator.alerts.tables import Alert, Webhook
from orchestrator.db.session import Database
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.system.clock import Clock

log = structlog.get_logger()

FIRST_WAIT_S = 5.0
LONGEST_WAIT_S = 1800.0
MAX_TRIES = 40
"""Covers about 16 hours."""


def wait_after(tries: int, rng: random.Random) -> timedelta:
    """The wait before the next try: doubles up to half an hour, with a jitter of a fifth."""
    seconds = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(tries - 1, 20))
    return timedelta(seconds=seconds * rng.uniform(0.8, 1.2))


class Deliveries:
    def __init__(
        self, db: Database, leadership: Leadership, clock: Clock, rng: random.Random, sender: WebhookSender
    ) -> None:
        self._db = db
        self._leadership = leadership
        self._clock = clock
        self._rng = rng
        self._sender = sender

    async def round(self) -> bool:
        """One try for each address with a waiting alert; returns whether another round should follow at once."""
        if self._leadership.epoch is None:
            return False
        now = self._clock.now()
        waiting = await self._db.read(lambda s: queries.heads(s, now))
        delivered = await asyncio.gather(*(self._try(webhook, alert) for _, webhook, alert in waiting))
        return any(delivered)

    async def _try(self, webhook: Webhook, alert: Alert) -> bool:
        result = await self._sender.send(webhook, alert)
        now = self._clock.now()
        await self._leadership.write(lambda s: self._store(s, webhook, alert, result, now))
        if result.error is not None:
            log.warning("alert not delivered", action="webhook_failed", webhook=webhook.id, error=result.error)
        return result.error is None

    def _store(self, session: Session, webhook: Webhook, alert: Alert, result: DeliveryResult, now: datetime) -> None:
        row = queries.delivery(session, webhook.id or 0, alert.id or 0)
        if row is None or row.state != queries.PENDING:
            return
        row.tries += 1
        row.last_error = result.error
        if result.error is None:
            row.state, row.delivered_at = queries.DELIVERED, now
        elif result.is_gone or row.tries >= MAX_TRIES:
            row.state = queries.DEAD
        else:
            row.not_before = now + wait_after(row.tries, self._rng)
        session.add(row)
