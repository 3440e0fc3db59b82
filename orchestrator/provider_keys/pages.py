"""Provider key pages: the workspace's keys and the user's own. A key is entered once and never shown again."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from pydantic import ValidationError
from starlette.responses import Response

from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.errors import ClientError
from orchestrator.http.audit_trail import note
from orchestrator.http.context import caller_of
from orchestrator.http.policy import READ, RUN, Policy
from orchestrator.provider_keys.schemas import KeyCreate, KeyOut
from orchestrator.provider_keys.service import holder_id
from orchestrator.scopes import Scope

router = page_router()

Id = Annotated[int, Path(ge=0, le=2**31 - 1)]
FIELDS = ("provider", "key", "name", "holder")


@router.get("/keys", policy=Policy(READ))
async def keys_page(page: Page) -> Response:
    return await keys_view(page)


@router.post("/keys", policy=Policy(RUN))
async def give_key(page: Page) -> Response:
    form = {name: values[-1] for name, values in (await page.form()).items() if name in FIELDS}
    caller = caller_of(page.request)
    try:
        body = KeyCreate.model_validate(form)
        key, new = await page.context.accounts.keys.put(
            **body.values(), user_id=holder_id(body.holder, caller.user_id, caller.scope), by=caller.name
        )
    except (ValidationError, ClientError) as error:
        form.pop("key", None)
        return await keys_view(page, 422, error=said(error), form=form)
    note(page.request.scope, object_id=str(key.id), detail=f"{key.provider}, {body.holder}")
    notice = f"Key for {key.provider} saved (ends in {key.hint})."
    return await keys_view(page, 201 if new else 200, notice=notice)


@router.post("/keys/{key_id}/remove", policy=Policy(RUN))
async def remove_key(page: Page, key_id: Id) -> Response:
    caller = caller_of(page.request)
    row = await page.context.accounts.keys.remove(key_id, caller.user_id, admin=caller.scope.allows(Scope.ADMIN))
    note(page.request.scope, detail=row.provider)
    return page.go("/keys")


async def keys_view(
    page: Frame,
    status: int = 200,
    *,
    error: str | None = None,
    notice: str | None = None,
    form: dict[str, str] | None = None,
) -> Response:
    caller = caller_of(page.request)
    return page.show(
        "provider_keys/keys.html",
        status,
        keys=[KeyOut.of(row) for row in await page.context.accounts.keys.listed(caller.user_id)],
        providers=sorted(page.context.accounts.keys.providers),
        may=caller.scope.allows(Scope.RUN),
        admin=caller.scope.allows(Scope.ADMIN),
        person=caller.user_id is not None,
        shared=page.context.settings.system_keys == "everyone",
        error=error,
        notice=notice,
        given=form or {},
    )
