"""The page of an alert; pages of webhooks: add, test, change the secret, remove, and dead deliveries."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import ValidationError
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.alerts import queries
from orchestrator.alerts.alerts import AlertKind
from orchestrator.alerts.schemas import AlertOut, DeliveryOut, SecretChange, WebhookCreate, WebhookOut
from orchestrator.alerts.sending.messages import MessageFormat
from orchestrator.alerts.views import alert_detail
from orchestrator.dashboard.shell import Page, page_router, said
from orchestrator.datasets.entries import known_entries
from orchestrator.errors import ClientError
from orchestrator.http.context import caller_of
from orchestrator.http.policy import ADMIN, READ, RUN, SCHEDULE, Policy
from orchestrator.models import queries as model_queries
from orchestrator.tokens.pages import Id, Secret, settings_view

router = page_router()

SHOWN = 200
LISTED = 100
MUTE_HOURS = ("4", "24", "168")
KINDS = {
    AlertKind.WORSE.value: "worse",
    AlertKind.BETTER.value: "better",
    AlertKind.RUN_FAILED.value: "run failed",
    AlertKind.MISSED.value: "missed",
}
AlertId = Annotated[int, Path(ge=0, le=2**53)]


@router.get("/alerts", policy=Policy(READ))
async def alerts_page(
    page: Page,
    after: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    show: Annotated[str, Query(pattern="^(|all)$")] = "",
) -> Response:
    now = page.context.clock.now()

    def read(session: Session) -> dict[str, Any]:
        rows = queries.page(session, limit=LISTED + 1, before=after, acknowledged=None if show else False)
        models = model_queries.page(session, limit=1000, with_archived=True)
        return {
            "alerts": [AlertOut.of(row) for row in rows[:LISTED]],
            "older": rows[LISTED - 1].id if len(rows) > LISTED else None,
            "names": {model.id: model.slug for model in models},
            "mutes": {row.model_id: row for row in queries.mutes(session, now)},
        }

    return page.show("alerts/alerts.html", kinds=KINDS, show=show, **await page.context.db.read(read))


@router.get("/alerts/{alert_id}", policy=Policy(READ))
async def show_alert(page: Page, alert_id: AlertId) -> Response:
    """What changed."""
    it = await page.context.db.read(lambda s: alert_detail(s, alert_id))
    mutes = {row.model_id: row for row in await page.context.alerts.mutes()}
    names = sorted({flip.benchmark for flip in it.flipped})
    entries = await asyncio.to_thread(known_entries, page.context.catalogue, names)
    return page.show("alerts/alert.html", it=it, mute=mutes.get(it.model_id or -1), kinds=KINDS, entries=entries)


@router.post("/alerts/mutes/{model_id}", policy=Policy(SCHEDULE))
async def mute_alerts(page: Page, model_id: Annotated[int, Path(ge=0, le=2**31 - 1)]) -> Response:
    """Mute the alerts of a model for the chosen hours, or send them again."""
    hours = (await page.form()).get("hours", [""])[-1]
    if hours in MUTE_HOURS:
        model = await page.context.runs.find_model(model_id)
        name = caller_of(page.request).name
        await page.context.alerts.mute(model.id or 0, timedelta(hours=int(hours)), name)
    else:
        await page.context.alerts.unmute(model_id)
    return page.go("/alerts", show="all")


@router.post("/alerts/{alert_id}/acknowledge", policy=Policy(RUN))
async def acknowledge(page: Page, alert_id: AlertId) -> Response:
    await page.context.alerts.acknowledge(alert_id, caller_of(page.request).name)
    return page.go("/alerts")


@router.post("/alerts/{alert_id}/reopen", policy=Policy(RUN))
async def reopen(page: Page, alert_id: AlertId) -> Response:
    await page.context.alerts.acknowledge(alert_id, None)
    return page.go(f"/alerts/{alert_id}")


@router.post("/settings/webhooks", policy=Policy(ADMIN))
async def add_webhook(page: Page) -> Response:
    form = {name: values[-1] for name, values in (await page.form()).items() if values[-1]}
    try:
        every = form.get("every_failed_run") == "yes"
        body = WebhookCreate.model_validate(
            {
                "url": form.get("url", ""),
                "format": form.get("format", "standard"),
                "model_id": form.get("model"),
                "every_failed_run": every,
            }
        )
        model = None if body.model_id is None else await page.context.runs.find_model(body.model_id)
        webhook = await page.context.webhooks.add(
            body.url, model.id if model else None, every_failed_run=body.every_failed_run, form=body.format
        )
    except (ValidationError, ClientError) as error:
        return await settings_view(page, 422, error=said(error), form=form)
    if body.format is not MessageFormat.STANDARD:  # only signed messages have a secret
        return page.go("/settings", added=str(webhook.id))
    return await settings_view(page, 201, secret=Secret("Signing secret", webhook.secret))


@router.get("/settings/webhooks/{webhook_id}", policy=Policy(ADMIN))
async def show_webhook(
    page: Page, webhook_id: Id, state: Annotated[str, Query(pattern="^(|pending|delivered|dead)$")] = ""
) -> Response:
    webhook = WebhookOut.of(*await page.context.webhooks.find(webhook_id), page.context.clock.now())
    rows = await page.context.webhooks.deliveries(webhook_id, state=state or None, limit=SHOWN + 1)
    deliveries = [DeliveryOut.of(row, alert) for row, alert in rows[:SHOWN]]
    return page.show("alerts/webhook.html", it=webhook, deliveries=deliveries, more=len(rows) > SHOWN, state=state)


@router.post("/settings/webhooks/{webhook_id}/failures", policy=Policy(ADMIN))
async def choose_failures(page: Page, webhook_id: Id) -> Response:
    """Choose whether the webhook gets every failed run."""
    every = (await page.form()).get("every_failed_run", [""])[-1] == "yes"
    await page.context.webhooks.change(webhook_id, every_failed_run=every)
    return page.go("/settings")


@router.post("/settings/webhooks/{webhook_id}/test", policy=Policy(ADMIN))
async def try_webhook(page: Page, webhook_id: Id) -> Response:
    """Send a test message and show the result."""
    tried = await page.context.webhooks.test(webhook_id)
    if tried.error is None:
        return await settings_view(
            page, notice=f"Test delivered: HTTP {tried.status}" if tried.status else "Test handed to the mail server"
        )
    return await settings_view(page, 422, error=f"Test failed: {tried.error}")


@router.post("/settings/webhooks/{webhook_id}/rotate", policy=Policy(ADMIN))
async def rotate_secret(page: Page, webhook_id: Id) -> Response:
    webhook = await page.context.webhooks.rotate(webhook_id, timedelta(seconds=SecretChange().keep_old_s))
    return await settings_view(page, secret=Secret("New signing secret (the old one stays valid for a day)", webhook.secret))


@router.post("/settings/webhooks/{webhook_id}/remove", policy=Policy(ADMIN))
async def remove_webhook(page: Page, webhook_id: Id) -> Response:
    await page.context.webhooks.remove(webhook_id)
    return page.go("/settings")


@router.post("/settings/webhooks/{webhook_id}/retry", policy=Policy(ADMIN))
async def retry_dead(page: Page, webhook_id: Id) -> Response:
    await page.context.webhooks.retry_dead(webhook_id)
    return page.go(f"/settings/webhooks/{webhook_id}")


@router.post("/settings/webhooks/{webhook_id}/deliveries/{alert_id}/retry", policy=Policy(ADMIN))
async def retry_delivery(page: Page, webhook_id: Id, alert_id: AlertId) -> Response:
    await page.context.webhooks.retry(webhook_id, alert_id)
    return page.go(f"/settings/webhooks/{webhook_id}")
