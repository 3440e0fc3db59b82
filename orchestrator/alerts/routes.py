"""REST for alerts: the list, the feed, and the addresses that are told of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import Path, Query, Request, Response

from orchestrator.alerts import queries
from orchestrator.alerts.alerts import AlertKind
from orchestrator.alerts.feed import atom
from orchestrator.alerts.schemas import (
    AlertOut,
    DeliveryOut,
    Retried,
    SecretChange,
    WebhookChange,
    WebhookCreate,
    WebhookCreated,
    WebhookOut,
    WebhookTried,
)
from orchestrator.http.context import Context, Services, base_url
from orchestrator.http.policy import ADMIN, READ, Policy, Router
from orchestrator.http.schemas import Limit, Page

router = Router(prefix="/api/alerts", tags=["alerts"])

WebhookId = Annotated[int, Path(ge=0, le=2**31 - 1)]


@router.get("", policy=Policy(READ))
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


@router.get("/feed", policy=Policy(READ), response_class=Response)
async def get_feed(context: Context, request: Request, limit: Limit = 50) -> Response:
    """Alerts as an Atom feed."""
    rows = await context.db.read(lambda s: queries.page(s, limit=limit))
    return Response(atom(rows, base_url(context, request), context.clock.now()), media_type="application/atom+xml")


@router.get("/webhooks", policy=Policy(ADMIN))
async def list_webhooks(context: Context) -> Page[WebhookOut]:
    """Addresses that are told of alerts, with the state of what was sent to them."""
    now = context.clock.now()
    return Page(items=[WebhookOut.of(row, counts, now) for row, counts in await context.webhooks.listed()])


@router.post("/webhooks", policy=Policy(ADMIN), status_code=201)
async def add_webhook(body: WebhookCreate, context: Context) -> WebhookCreated:
    """Have alerts posted to an address, signed as Standard Webhooks asks. The secret is shown only now."""
    model = None if body.model_id is None else await context.runs.find_model(body.model_id)
    stored = await context.webhooks.add(body.url, model.id if model else None, every_failed_run=body.every_failed_run)
    return WebhookCreated(**WebhookOut.of(stored, {}, context.clock.now()).model_dump(), secret=stored.secret)


@router.get("/webhooks/{webhook_id}", policy=Policy(ADMIN))
async def get_webhook(webhook_id: WebhookId, context: Context) -> WebhookOut:
    return await _one(webhook_id, context)


@router.patch("/webhooks/{webhook_id}", policy=Policy(ADMIN))
async def change_webhook(webhook_id: WebhookId, body: WebhookChange, context: Context) -> WebhookOut:
    """Choose whether this address is told of every run that fails, or of scheduled ones alone."""
    await context.webhooks.change(webhook_id, every_failed_run=body.every_failed_run)
    return await _one(webhook_id, context)


@router.delete("/webhooks/{webhook_id}", policy=Policy(ADMIN), status_code=204)
async def remove_webhook(webhook_id: WebhookId, context: Context) -> None:
    """Tell this address no more; what was on its way is dropped."""
    await context.webhooks.remove(webhook_id)


@router.post("/webhooks/{webhook_id}/rotate", policy=Policy(ADMIN))
async def rotate_secret(webhook_id: WebhookId, context: Context, body: SecretChange | None = None) -> WebhookCreated:
    """A new secret, shown only now. For a while messages carry both signatures, so that none is lost meanwhile."""
    keep_old = timedelta(seconds=(body or SecretChange()).keep_old_s)
    stored = await context.webhooks.rotate(webhook_id, keep_old)
    return WebhookCreated(**(await _one(webhook_id, context)).model_dump(), secret=stored.secret)


@router.post("/webhooks/{webhook_id}/test", policy=Policy(ADMIN))
async def try_webhook(webhook_id: WebhookId, context: Context) -> WebhookTried:
    """Send a message of the type `webhook.test` now, once, and say what became of it."""
    result = await context.webhooks.test(webhook_id)
    return WebhookTried(delivered=result.error is None, status=result.status, error=result.error)


@router.get("/webhooks/{webhook_id}/deliveries", policy=Policy(ADMIN))
async def list_deliveries(
    webhook_id: WebhookId,
    context: Context,
    limit: Limit = 100,
    after: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    state: Annotated[str | None, Query(pattern="^(pending|delivered|dead)$")] = None,
) -> Page[DeliveryOut]:
    """What was sent or is to be sent, newest first; `dead` are those that were given up."""
    rows = await context.webhooks.deliveries(webhook_id, state=state, limit=limit + 1, before=after)
    items = [DeliveryOut.of(row, alert) for row, alert in rows[:limit]]
    return Page(items=items, next=str(items[-1].alert_id) if len(rows) > limit else None)


@router.post("/webhooks/{webhook_id}/deliveries/retry", policy=Policy(ADMIN), status_code=202)
async def retry_dead(webhook_id: WebhookId, context: Context) -> Retried:
    """Send everything again that was given up."""
    return Retried(retried=await context.webhooks.retry_dead(webhook_id))


@router.post("/webhooks/{webhook_id}/deliveries/{alert_id}/retry", policy=Policy(ADMIN), status_code=202)
async def retry_delivery(
    webhook_id: WebhookId, alert_id: Annotated[int, Path(ge=0, le=2**53)], context: Context
) -> DeliveryOut:
    """Send an alert again that was given up or delivered."""
    return DeliveryOut.of(*await context.webhooks.retry(webhook_id, alert_id))


async def _one(webhook_id: int, context: Services) -> WebhookOut:
    return WebhookOut.of(*await context.webhooks.find(webhook_id), context.clock.now())
