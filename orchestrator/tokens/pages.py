"""The settings page: API tokens and the list of webhooks. A secret is shown only on the page that created it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import ValidationError
from starlette.responses import Response

from orchestrator.alerts.schemas import WebhookOut
from orchestrator.alerts.sending.messages import MessageFormat
from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.errors import ClientError
from orchestrator.http.access.identity import Caller
from orchestrator.http.audit_trail import note
from orchestrator.http.context import caller_of
from orchestrator.http.policy import ADMIN, Policy
from orchestrator.models import queries as model_queries
from orchestrator.scopes import Scope
from orchestrator.tokens.schemas import TokenCreate, TokenOut

router = page_router()

SCOPES = {
    Scope.READ: "read everything",
    Scope.RUN: "also start and stop runs",
    Scope.SCHEDULE: "also manage schedules",
    Scope.ADMIN: "everything",
    Scope.AGENT: "only to connect another machine",
}
FORMATS = {
    MessageFormat.SLACK: "Slack",
    MessageFormat.TEAMS: "Microsoft Teams",
    MessageFormat.DISCORD: "Discord",
    MessageFormat.EMAIL: "E-mail",
    MessageFormat.STANDARD: "Program (signed JSON)",
}
LIFETIMES = {"7": "in 7 days", "30": "in 30 days", "90": "in 90 days", "365": "in a year", "": "never"}

Id = Annotated[int, Path(ge=0, le=2**31 - 1)]


@dataclass(frozen=True)
class Secret:
    title: str
    value: str


@router.get("/settings", policy=Policy(ADMIN))
async def settings_page(
    page: Page, model: Annotated[str, Query(max_length=200)] = "", added: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """`model` is chosen in the form for notifications."""
    notice = "Added. Send a test message to see it arrive." if added else None
    return await settings_view(page, notice=notice, form={"model": model} if model else None)


@router.post("/settings/tokens", policy=Policy(ADMIN))
async def create_token(page: Page) -> Response:
    form = {name: values[-1] for name, values in (await page.form()).items()}
    try:
        secret = await make_token(page, token_request(form), caller_of(page.request))
    except (ValidationError, ClientError) as error:
        return await settings_view(page, 422, error=said(error), form={"expires_in_days": "", **form})
    return await settings_view(page, 201, secret=secret)


def token_request(form: dict[str, str]) -> TokenCreate:
    """The token requested in a form."""
    body: dict[str, Any] = {name: form[name] for name in ("name", "scope") if name in form}
    if days := form.get("expires_in_days"):
        body["expires_in_days"] = int(days) if days.isdecimal() and len(days) < 6 else days
    return TokenCreate.model_validate(body)


async def make_token(page: Frame, body: TokenCreate, maker: Caller) -> Secret:
    row, secret = await page.context.accounts.tokens.make(body.name, body.scope, body.expires_in_days, maker=maker.scope)
    note(page.request.scope, object_id=str(row.id), detail=f"{row.name} ({row.scope})")
    return Secret(f"Token “{row.name}”", secret)


@router.post("/settings/tokens/{token_id}/revoke", policy=Policy(ADMIN))
async def revoke_token(page: Page, token_id: Id) -> Response:
    await page.context.accounts.tokens.revoke(token_id)
    return page.go("/settings")


async def settings_view(
    page: Frame,
    status: int = 200,
    *,
    error: str | None = None,
    notice: str | None = None,
    secret: Secret | None = None,
    form: dict[str, str] | None = None,
) -> Response:
    """The settings page, with the result of the last action."""
    now = page.context.clock.now()
    tokens = [TokenOut.of(row, now, owner) for row, owner in await page.context.accounts.tokens.listed()]
    hooks = [WebhookOut.of(row, counts, now) for row, counts in await page.context.webhooks.listed()]
    models = await page.context.db.read(lambda s: model_queries.page(s, limit=1000, with_archived=True))
    return page.show(
        "tokens/settings.html",
        status,
        tokens=tokens,
        webhooks=hooks,
        names={model.id: model.slug for model in models},
        models=[model.slug for model in models if model.archived_at is None],
        error=error,
        notice=notice,
        secret=secret,
        given=form or {},
        scopes=SCOPES,
        lifetimes=LIFETIMES,
        formats=FORMATS,
    )
