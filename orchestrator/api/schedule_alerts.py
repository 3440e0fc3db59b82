"""REST for alerts: the list, the feed, and the addresses that are told of them."""

from __future__ import annotations

import os
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from sqlmodel import Session

from orchestrator.api.context import Context
from orchestrator.api.schedule_schemas import AlertOut, DeliveryOut, WebhookCreate, WebhookCreated, WebhookOut
from orchestrator.api.schemas import Page
from orchestrator.db import schedule_alert_queries as queries
from orchestrator.db.schedule_tables import Webhook
from orchestrator.errors import NotFound
from orchestrator.schedules.alerts import AlertKind
from orchestrator.schedules.feed import atom
from orchestrator.schedules.webhook_message import SECRET_BYTES, new_secret

router = APIRouter(prefix="/api/alerts", tags=["alerts"])

Limit = Annotated[int, Query(ge=1, le=500)]
WebhookId = Annotated[int, Path(ge=0, le=2**31 - 1)]


@router.get("")
async def list_alerts(
    context: Context,
    limit: Limit = 50,
    after: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    model_id: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
    kind: AlertKind | None = None,
) -> Page[AlertOut]:
    """Alerts, newest first."""
    rows = await context.db.read(
        lambda s: queries.page(s, limit=limit + 1, before=after, model_id=model_id, kind=kind and kind.value)
    )
    items = [AlertOut.of(row) for row in rows[:limit]]
    return Page(items=items, next=str(items[-1].id) if len(rows) > limit else None)


@router.get("/feed", response_class=Response)
async def get_feed(context: Context, request: Request, limit: Limit = 50) -> Response:
    """Alerts as an Atom feed."""
    rows = await context.db.read(lambda s: queries.page(s, limit=limit))
    return Response(atom(rows, str(request.base_url).rstrip("/"), context.clock.now()), media_type="application/atom+xml")


@router.get("/webhooks")
async def list_webhooks(context: Context) -> Page[WebhookOut]:
    """Addresses that are told of alerts, with the state of what was sent to them."""

    def read(session: Session) -> list[WebhookOut]:
        counts = queries.counts(session)
        return [_out(row, counts.get(row.id or 0, {})) for row in queries.webhooks(session)]

    return Page(items=await context.db.read(read))


@router.post("/webhooks", status_code=201)
async def add_webhook(body: WebhookCreate, context: Context) -> WebhookCreated:
    """Have alerts posted to an address, signed as Standard Webhooks asks. The secret is shown only now."""
    model = None if body.model_id is None else await context.runs.find_model(body.model_id)
    row = Webhook(
        url=body.url,
        secret=new_secret(os.urandom(SECRET_BYTES)),
        model_id=model.id if model else None,
        created_at=context.clock.now(),
    )

    def insert(session: Session) -> Webhook:
        session.add(row)
        session.flush()
        return row

    stored = await context.db.write(insert)
    return WebhookCreated(**_out(stored, {}).model_dump(), secret=stored.secret)


@router.delete("/webhooks/{webhook_id}", status_code=204)
async def remove_webhook(webhook_id: WebhookId, context: Context) -> None:
    def remove(session: Session) -> None:
        session.delete(_existing(session, webhook_id))

    await context.db.write(remove)


@router.get("/webhooks/{webhook_id}/deliveries")
async def list_deliveries(
    webhook_id: WebhookId,
    context: Context,
    limit: Limit = 100,
    state: Annotated[str | None, Query(pattern="^(pending|delivered|dead)$")] = None,
) -> Page[DeliveryOut]:
    """What was sent or is to be sent, newest first; `dead` are those that were given up."""

    def read(session: Session) -> list[DeliveryOut]:
        _existing(session, webhook_id)
        rows = queries.deliveries(session, webhook_id, state=state, limit=limit)
        return [DeliveryOut(**{name: getattr(row, name) for name in DeliveryOut.model_fields}) for row in rows]

    return Page(items=await context.db.read(read))


@router.post("/webhooks/{webhook_id}/deliveries/{alert_id}/retry", status_code=202)
async def retry_delivery(
    webhook_id: WebhookId, alert_id: Annotated[int, Path(ge=0, le=2**53)], context: Context
) -> DeliveryOut:
    """Send an alert again that was given up or delivered."""
    now = context.clock.now()

    def again(session: Session) -> DeliveryOut:
        _existing(session, webhook_id)
        row = queries.delivery(session, webhook_id, alert_id)
        if row is None:
            raise NotFound(f"alert {alert_id} was never meant for webhook {webhook_id}")
        row.state, row.tries, row.not_before = queries.PENDING, 0, now
        session.add(row)
        return DeliveryOut(**{name: getattr(row, name) for name in DeliveryOut.model_fields})

    return await context.db.write(again)


def _existing(session: Session, webhook_id: int) -> Webhook:
    row = queries.webhook(session, webhook_id)
    if row is None:
        raise NotFound(f"there is no webhook {webhook_id}; GET /api/alerts/webhooks lists those there are")
    return row


def _out(row: Webhook, deliveries: dict[str, int]) -> WebhookOut:
    return WebhookOut(id=row.id or 0, url=row.url, model_id=row.model_id, created_at=row.created_at, deliveries=deliveries)
