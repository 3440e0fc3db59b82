"""Pages of webhooks: add, test, change the secret, remove, and dead deliveries."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import Path, Query
from pydantic import ValidationError
from starlette.responses import Response

from orchestrator.alerts.schemas import DeliveryOut, SecretChange, WebhookCreate, WebhookOut
from orchestrator.dashboard.shell import Page, page_router, said
from orchestrator.errors import ClientError
from orchestrator.http.policy import ADMIN, Policy
from orchestrator.tokens.pages import Id, Secret, settings_view

router = page_router()

SHOWN = 200
AlertId = Annotated[int, Path(ge=0, le=2**53)]


@router.post("/settings/webhooks", policy=Policy(ADMIN))
async def add_webhook(page: Page) -> Response:
    form = {name: values[-1] for name, values in (await page.form()).items() if values[-1]}
    try:
        every = form.get("every_failed_run") == "yes"
        body = WebhookCreate.model_validate(
            {"url": form.get("url", ""), "model_id": form.get("model"), "every_failed_run": every}
        )
        model = None if body.model_id is None else await page.context.runs.find_model(body.model_id)
        webhook = await page.context.webhooks.add(
            body.url, model.id if model else None, every_failed_run=body.every_failed_run
        )
    except (ValidationError, ClientError) as error:
        return await settings_view(page, 422, error=said(error), form=form)
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
        return await settings_view(page, notice=f"Test delivered: HTTP {tried.status}")
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
