"""Operations on alerts (acknowledge, mute) and on webhooks: add, rotate the secret, test, send again, remove."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from sqlmodel import Session

from orchestrator.alerts import queries
from orchestrator.alerts.sending.mail import SETTINGS
from orchestrator.alerts.sending.messages import MessageFormat
from orchestrator.alerts.sending.webhooks import SECRET_BYTES, AllowedAddresses, DeliveryResult, WebhookSender, new_secret
from orchestrator.alerts.tables import Alert, AlertMute, Webhook, WebhookDelivery
from orchestrator.db.session import Database
from orchestrator.errors import Invalid, NotFound
from orchestrator.system.clock import Clock

TEST_KIND = "webhook.test"


class WebhookService:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        allowed: AllowedAddresses,
        sender: WebhookSender,
        entropy: Callable[[int], bytes],
    ) -> None:
        self._db = db
        self._clock = clock
        self._allowed = allowed
        self._sender = sender
        self._entropy = entropy

    async def add(
        self,
        url: str,
        model_id: int | None,
        *,
        every_failed_run: bool = False,
        form: MessageFormat = MessageFormat.STANDARD,
    ) -> Webhook:
        if form is MessageFormat.EMAIL:
            if not self._sender.can_mail:
                raise Invalid(f"url: no mail server is configured; set {SETTINGS} and restart the service")
        elif (why := await self._allowed.refusal(url)) is not None:
            raise Invalid(f"url: {why}")
        row = Webhook(
            url=url,
            secret=self._new_secret(),
            model_id=model_id,
            every_failed_run=every_failed_run,
            format=form.value,
            created_at=self._clock.now(),
        )

        def insert(session: Session) -> Webhook:
            session.add(row)
            session.flush()
            return row

        return await self._db.write(insert)

    async def listed(self) -> list[tuple[Webhook, dict[str, int]]]:
        """All webhooks, each with the number of its deliveries by state."""

        def read(session: Session) -> list[tuple[Webhook, dict[str, int]]]:
            counts = queries.counts(session)
            return [(row, counts.get(row.id or 0, {})) for row in queries.webhooks(session)]

        return await self._db.read(read)

    async def find(self, webhook_id: int) -> tuple[Webhook, dict[str, int]]:
        return await self._db.read(lambda s: (existing(s, webhook_id), queries.counts(s).get(webhook_id, {})))

    async def deliveries(
        self, webhook_id: int, *, state: str | None, limit: int, before: int | None = None
    ) -> Sequence[tuple[WebhookDelivery, Alert]]:
        """Newest first."""

        def read(session: Session) -> Sequence[tuple[WebhookDelivery, Alert]]:
            existing(session, webhook_id)
            return queries.deliveries(session, webhook_id, state=state, limit=limit, before=before)

        return await self._db.read(read)

    async def change(self, webhook_id: int, *, every_failed_run: bool) -> None:
        """Choose whether the webhook gets every failed run."""

        def change(session: Session) -> None:
            row = existing(session, webhook_id)
            row.every_failed_run = every_failed_run
            session.add(row)

        await self._db.write(change)

    async def rotate(self, webhook_id: int, keep_old: timedelta) -> Webhook:
        """Create a new secret; the previous one also signs for `keep_old`."""
        secret, now = self._new_secret(), self._clock.now()

        def change(session: Session) -> Webhook:
            row = existing(session, webhook_id)
            row.previous_secret, row.previous_until = (row.secret, now + keep_old) if keep_old else (None, None)
            row.secret = secret
            session.add(row)
            return row

        return await self._db.write(change)

    async def test(self, webhook_id: int) -> DeliveryResult:
        """Send one test message now, marked as such by its type. Nothing is stored."""
        webhook = await self._db.read(lambda s: existing(s, webhook_id))
        now = self._clock.now()
        alert = Alert(
            uid=f"msg_test_{self._entropy(12).hex()}",
            model_id=webhook.model_id or 0,
            kind=TEST_KIND,
            title="A test: Benchyard reaches this address.",
            at=now,
        )
        return await self._sender.send(webhook, alert)

    async def retry(self, webhook_id: int, alert_id: int) -> tuple[WebhookDelivery, Alert]:
        """Send one alert again, whatever its state."""
        now = self._clock.now()

        def again(session: Session) -> tuple[WebhookDelivery, Alert]:
            existing(session, webhook_id)
            delivery = queries.delivery_with_alert(session, webhook_id, alert_id)
            if delivery is None:
                raise NotFound(f"alert {alert_id} has no delivery to webhook {webhook_id}")
            queries.send_again(session, delivery[0], now)
            return delivery

        return await self._db.write(again)

    async def retry_dead(self, webhook_id: int) -> int:
        """Send all dead deliveries again; returns how many."""
        now = self._clock.now()

        def again(session: Session) -> int:
            existing(session, webhook_id)
            dead = queries.dead(session, webhook_id)
            for row in dead:
                queries.send_again(session, row, now)
            return len(dead)

        return await self._db.write(again)

    async def remove(self, webhook_id: int) -> None:
        def remove(session: Session) -> None:
            session.delete(existing(session, webhook_id))

        await self._db.write(remove)

    def _new_secret(self) -> str:
        return new_secret(self._entropy(SECRET_BYTES))


class AlertService:
    """Operations on alerts: acknowledge, mute."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def acknowledge(self, alert_id: int, by: str | None) -> Alert:
        """`by` has seen it; None opens it again."""
        now = self._clock.now()

        def change(session: Session) -> Alert:
            alert = queries.get(session, alert_id)
            if alert is None:
                raise NotFound(f"there is no alert {alert_id}; GET /api/alerts lists the existing ones")
            if by is None or alert.acknowledged_at is None:  # who was first stays
                queries.acknowledge(session, alert, now if by is not None else None, by)
            return alert

        return await self._db.write(change)

    async def mute(self, model_id: int, duration: timedelta, by: str) -> AlertMute:
        """Send nothing about this model for a while; alerts are still stored."""
        until = self._clock.now() + duration
        return await self._db.write(lambda s: queries.set_mute(s, model_id, until, by))

    async def unmute(self, model_id: int) -> None:
        def end(session: Session) -> None:
            if not queries.end_mute(session, model_id):
                raise NotFound(f"alerts of the model {model_id} are not muted; GET /api/alerts/mutes lists those that are")

        await self._db.write(end)

    async def mutes(self) -> Sequence[AlertMute]:
        now = self._clock.now()
        return await self._db.read(lambda s: queries.mutes(s, now))


def existing(session: Session, webhook_id: int) -> Webhook:
    row = queries.webhook(session, webhook_id)
    if row is None:
        raise NotFound(f"there is no webhook {webhook_id}; GET /api/alerts/webhooks lists the existing ones")
    return row
