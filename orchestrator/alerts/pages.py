"""The addresses that are told of alerts: add, try, change the secret, remove, and what was given up."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from pydantic import ValidationError
from starlette.responses import Response

from orchestrator.alerts import routes as api
from orchestrator.alerts.schemas import WebhookChange, WebhookCreate
from orchestrator.dashboard.shell import Page, page_router, said
from orchestrator.errors import ClientError
from orchestrator.http.policy import ADMIN, Policy
from orchestrator.tokens.pages import Id, Secret, settings_view

router = page_router()

SHOWN = 200
AlertId = Annotated[int, Path(ge=0, le=2**53)]


@router.post("/settings/webhooks", policy=Policy(ADMIN))
async def add_webhook(page: Page) -> Response:
    given = {name: values[-1] for name, values in (await page.form()).items() if values[-1]}
    try:
        every = given.get("every_failed_run") == "yes"
        body = WebhookCreate.model_validate(
            {"url": given.get("url", ""), "model_id": given.get("model"), "every_failed_run": every}
        )
        made = await api.add_webhook(body, page.context)
    except (ValidationError, ClientError) as error:
        return await settings_view(page, 422, error=said(error), given=given)
    return await settings_view(page, 201, secret=Secret("The secret that signs what is posted there", made.secret))


@router.get("/settings/webhooks/{webhook_id}", policy=Policy(ADMIN))
async def show_webhook(
    page: Page, webhook_id: Id, state: Annotated[str, Query(pattern="^(|pending|delivered|dead)$")] = ""
) -> Response:
    webhook = await api.get_webhook(webhook_id, page.context)
    found = await api.list_deliveries(webhook_id, page.context, limit=SHOWN, state=state or None)
    return page.show("alerts/webhook.html", it=webhook, deliveries=found.items, more=found.next is not None, state=state)


@router.post("/settings/webhooks/{webhook_id}/failures", policy=Policy(ADMIN))
async def choose_failures(page: Page, webhook_id: Id) -> Response:
    """Whether the address is told of every run that fails."""
    every = (await page.form()).get("every_failed_run", [""])[-1] == "yes"
    await api.change_webhook(webhook_id, WebhookChange(every_failed_run=every), page.context)
    return page.go("/settings")


@router.post("/settings/webhooks/{webhook_id}/test", policy=Policy(ADMIN))
async def try_webhook(page: Page, webhook_id: Id) -> Response:
    """The answer is the page that says what came of it."""
    tried = await api.try_webhook(webhook_id, page.context)
    if tried.delivered:
        return await settings_view(page, notice=f"The test message was taken: the address answered {tried.status}.")
    return await settings_view(page, 422, error=f"The test message was not taken: {tried.error}.")


@router.post("/settings/webhooks/{webhook_id}/rotate", policy=Policy(ADMIN))
async def rotate_secret(page: Page, webhook_id: Id) -> Response:
    made = await api.rotate_secret(webhook_id, page.context)
    return await settings_view(
        page, secret=Secret("The new secret; for a day messages carry the signature of the old one too", made.secret)
    )


@router.post("/settings/webhooks/{webhook_id}/remove", policy=Policy(ADMIN))
async def remove_webhook(page: Page, webhook_id: Id) -> Response:
    await api.remove_webhook(webhook_id, page.context)
    return page.go("/settings")


@router.post("/settings/webhooks/{webhook_id}/retry", policy=Policy(ADMIN))
async def retry_dead(page: Page, webhook_id: Id) -> Response:
    await api.retry_dead(webhook_id, page.context)
    return page.go(f"/settings/webhooks/{webhook_id}")


@router.post("/settings/webhooks/{webhook_id}/deliveries/{alert_id}/retry", policy=Policy(ADMIN))
async def retry_delivery(page: Page, webhook_id: Id, alert_id: AlertId) -> Response:
    await api.retry_delivery(webhook_id, alert_id, page.context)
    return page.go(f"/settings/webhooks/{webhook_id}")
