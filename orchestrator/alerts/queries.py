"""Queries on alerts, webhooks, deliveries, and the secret of shared addresses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, or_
from sqlmodel import Session, col, select

from orchestrator.alerts.tables import Alert, AlertMute, Webhook, WebhookDelivery
from orchestrator.db.insert_once import insert_once
from orchestrator.db.service_tables import ServiceFact

PENDING, DELIVERED, DEAD = "pending", "delivered", "dead"
_WITH_ALERT = select(WebhookDelivery, Alert).join(Alert, col(Alert.id) == col(WebhookDelivery.alert_id))


def add(session: Session, alert: Alert) -> bool:
    """Store an alert and queue it for every webhook that wants it; returns whether it is new."""
    if session.exec(select(Alert.id).where(Alert.uid == alert.uid)).first() is not None:
        return False
    wanting = [hook for hook in session.exec(select(Webhook)).all() if hook.model_id in (None, alert.model_id)]
    add_for(session, alert, wanting)
    return True


def mute(session: Session, model_id: int, workspace_id: int | None = None) -> AlertMute | None:
    """`workspace_id` for a session that is not limited to one."""
    query = select(AlertMute).where(AlertMute.model_id == model_id)
    if workspace_id is not None:
        query = query.where(AlertMute.workspace_id == workspace_id)
    return session.exec(query).first()


def mutes(session: Session, now: datetime) -> Sequence[AlertMute]:
    """Those that still hold."""
    return session.exec(select(AlertMute).where(col(AlertMute.until) > now).order_by(col(AlertMute.until))).all()


def set_mute(session: Session, model_id: int, until: datetime, muted_by: str) -> AlertMute:
    row = mute(session, model_id) or AlertMute(model_id=model_id, until=until, muted_by=muted_by)
    row.until, row.muted_by = until, muted_by
    session.add(row)
    session.flush()
    return row


def end_mute(session: Session, model_id: int) -> bool:
    row = mute(session, model_id)
    if row is not None:
        session.delete(row)
    return row is not None


def acknowledge(session: Session, alert: Alert, at: datetime | None, by: str | None) -> None:
    """None for both opens it again."""
    alert.acknowledged_at, alert.acknowledged_by = at, by
    session.add(alert)


def wanting_failures(session: Session, workspace_id: int, model_id: int | None) -> Sequence[Webhook]:
    """The webhooks of a workspace that get every failed run of this model."""
    query = select(Webhook).where(
        Webhook.workspace_id == workspace_id,
        col(Webhook.every_failed_run),
        or_(col(Webhook.model_id).is_(None), col(Webhook.model_id) == model_id),
    )
    return session.exec(query).all()


def add_for(session: Session, alert: Alert, webhooks: Sequence[Webhook]) -> None:
    """Store a new alert and queue it for these addresses, unless its model is muted."""
    session.add(alert)
    session.flush()
    muted = mute(session, alert.model_id, alert.workspace_id) if alert.model_id is not None else None
    alert.muted = muted is not None and muted.until > alert.at
    for webhook in () if alert.muted else webhooks:
        session.add(WebhookDelivery(webhook_id=webhook.id or 0, alert_id=alert.id or 0, not_before=alert.at))


def page(
    session: Session,
    *,
    limit: int,
    before: int | None = None,
    model_id: int | None = None,
    kind: str | None = None,
    acknowledged: bool | None = None,
) -> Sequence[Alert]:
    """Newest first."""
    query = select(Alert)
    if before is not None:
        query = query.where(col(Alert.id) < before)
    if model_id is not None:
        query = query.where(Alert.model_id == model_id)
    if kind is not None:
        query = query.where(Alert.kind == kind)
    if acknowledged is not None:
        query = query.where(col(Alert.acknowledged_at).is_not(None) == acknowledged)
    return session.exec(query.order_by(col(Alert.id).desc()).limit(limit)).all()


def of_runs(session: Session, run_ids: Sequence[str]) -> dict[str, int]:
    """The newest alert about each of these runs."""
    query = select(Alert.run_id, func.max(Alert.id)).where(col(Alert.run_id).in_(run_ids)).group_by(col(Alert.run_id))
    return {str(run_id): int(alert_id) for run_id, alert_id in session.exec(query).all() if alert_id is not None}


def get(session: Session, alert_id: int) -> Alert | None:
    return session.exec(select(Alert).where(Alert.id == alert_id)).first()


def webhooks(session: Session) -> Sequence[Webhook]:
    return session.exec(select(Webhook).order_by(col(Webhook.id))).all()


def webhook(session: Session, webhook_id: int) -> Webhook | None:
    return session.get(Webhook, webhook_id)


def heads(session: Session, now: datetime) -> list[tuple[WebhookDelivery, Webhook, Alert]]:
    """The oldest undelivered alert of each address, if its next try is due. Each address gets its alerts in order."""
    oldest = (
        select(WebhookDelivery.webhook_id, func.min(WebhookDelivery.alert_id).label("alert_id"))
        .where(WebhookDelivery.state == PENDING)
        .group_by(col(WebhookDelivery.webhook_id))
        .subquery()
    )
    query = (
        select(WebhookDelivery, Webhook, Alert)
        .join(
            oldest,
            (col(WebhookDelivery.webhook_id) == oldest.c.webhook_id) & (col(WebhookDelivery.alert_id) == oldest.c.alert_id),
        )
        .join(Webhook, col(Webhook.id) == col(WebhookDelivery.webhook_id))
        .join(Alert, col(Alert.id) == col(WebhookDelivery.alert_id))
        .where(col(WebhookDelivery.not_before) <= now)
    )
    return [(delivery, hook, alert) for delivery, hook, alert in session.exec(query).all()]


def delivery(session: Session, webhook_id: int, alert_id: int) -> WebhookDelivery | None:
    return session.get(WebhookDelivery, (webhook_id, alert_id))


def delivery_with_alert(session: Session, webhook_id: int, alert_id: int) -> tuple[WebhookDelivery, Alert] | None:
    query = _WITH_ALERT.where(WebhookDelivery.webhook_id == webhook_id, WebhookDelivery.alert_id == alert_id)
    row = session.exec(query).first()
    return (row[0], row[1]) if row else None


def deliveries(
    session: Session, webhook_id: int, *, state: str | None, limit: int, before: int | None = None
) -> list[tuple[WebhookDelivery, Alert]]:
    """Newest first."""
    query = _WITH_ALERT.where(WebhookDelivery.webhook_id == webhook_id)
    if state is not None:
        query = query.where(WebhookDelivery.state == state)
    if before is not None:
        query = query.where(col(WebhookDelivery.alert_id) < before)
    rows = session.exec(query.order_by(col(WebhookDelivery.alert_id).desc()).limit(limit)).all()
    return [(delivery, alert) for delivery, alert in rows]


def dead(session: Session, webhook_id: int) -> Sequence[WebhookDelivery]:
    """Deliveries to this address that were given up."""
    query = select(WebhookDelivery).where(WebhookDelivery.webhook_id == webhook_id, WebhookDelivery.state == DEAD)
    return session.exec(query).all()


def send_again(session: Session, row: WebhookDelivery, now: datetime) -> None:
    """Reset the tries; the last error stays visible until the next try."""
    row.state, row.tries, row.not_before = PENDING, 0, now
    session.add(row)


def counts(session: Session) -> dict[int, dict[str, int]]:
    """Number of deliveries of each address by state."""
    query = select(WebhookDelivery.webhook_id, WebhookDelivery.state, func.count()).group_by(
        col(WebhookDelivery.webhook_id), WebhookDelivery.state
    )
    counts: dict[int, dict[str, int]] = {}
    for webhook_id, state, count in session.exec(query).all():
        counts.setdefault(webhook_id, {})[state] = int(count)
    return counts


def share_secret(session: Session, name: str) -> str | None:
    """The secret from which shared addresses are derived; None while nothing is shared."""
    return session.exec(select(ServiceFact.value).where(ServiceFact.name == name)).first()


def replace_share_secret(session: Session, name: str, value: str | None) -> None:
    """Invalidate all addresses made with the old secret; None ends sharing."""
    row = session.exec(select(ServiceFact).where(ServiceFact.name == name).with_for_update()).first()
    if row is not None and value is None:
        session.delete(row)
    elif row is not None and value is not None:
        row.value = value
        session.add(row)
    elif value is not None:
        insert_once(session, ServiceFact(name=name, value=value))
