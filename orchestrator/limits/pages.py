"""The limits page: limits of the workspace and its users, and their current usage."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import ValidationError
from starlette.responses import Response

from orchestrator.accounts import queries as account_queries
from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.errors import ClientError, Invalid
from orchestrator.http.context import caller_of
from orchestrator.http.policy import ADMIN, READ, Policy
from orchestrator.limits.schemas import LimitOut, LimitSet
from orchestrator.limits.service import Limit
from orchestrator.provider_keys.queries import EVERYONE, WORKSPACE
from orchestrator.scopes import Scope

router = page_router()

Whose = Annotated[str, Path(pattern=r"^(workspace|everyone|[1-9]\d{0,9})$")]
NUMBERS: dict[str, type[int] | type[float]] = {
    "runs_at_once": int,
    "spend_per_day_usd": float,
    "requests_per_second": float,
}


@router.get("/limits", policy=Policy(READ))
async def limits_page(page: Page) -> Response:
    return await limits_view(page)


@router.post("/limits", policy=Policy(ADMIN))
async def set_limit(page: Page) -> Response:
    form = {name: values[-1] for name, values in (await page.form()).items()}
    whose = form.get("whose", "")
    try:
        if whose not in (WORKSPACE, EVERYONE) and not (whose.isdecimal() and len(whose) < 11):
            raise Invalid("choose whom the limit is for")
        body = LimitSet.model_validate({name: _number(form[name], kind) for name, kind in NUMBERS.items() if form.get(name)})
        caller, limits = caller_of(page.request), page.context.accounts.limits
        limit = Limit(**body.model_dump())
        await limits.set(whose, limit, caller.workspace_id, by=caller.name, scope=caller.scope)
    except (ValidationError, ClientError) as error:
        return await limits_view(page, 422, error=said(error), form=form)
    page.context.signals.wake()
    return page.go("/limits")


@router.post("/limits/{whose}/remove", policy=Policy(ADMIN))
async def remove_limit(page: Page, whose: Whose) -> Response:
    caller = caller_of(page.request)
    await page.context.accounts.limits.remove(whose, caller.workspace_id, scope=caller.scope)
    page.context.signals.wake()
    return page.go("/limits")


async def limits_view(
    page: Frame, status: int = 200, *, error: str | None = None, form: dict[str, str] | None = None
) -> Response:
    caller = caller_of(page.request)
    overview = await page.context.accounts.limits.overview(caller.workspace_id, caller.user_id)
    people = await page.context.db.read(lambda session: account_queries.members(session, caller.workspace_id))
    owner, admin = caller.scope.allows(Scope.OWNER), caller.scope.allows(Scope.ADMIN)
    choices = [(EVERYONE, "each user"), *((str(user.id), user.name or user.email) for user, _ in people)]
    return page.show(
        "limits/limits.html",
        status,
        limits=[LimitOut.of(row, name) for row, name in overview.rows],
        uses=[("workspace", overview.workspace), *([("you", overview.own)] if overview.own else [])],
        choices=[*([(WORKSPACE, "workspace")] if owner else []), *choices],
        admin=admin,
        owner=owner,
        error=error,
        given=form or {},
    )


def _number(text: str, kind: type[int] | type[float]) -> Any:
    """A number if the text is one, otherwise the text, so that validation reports it."""
    try:
        return kind(text)
    except ValueError:
        return text
