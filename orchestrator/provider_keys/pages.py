"""Provider keys: the workspace's and one's own. A key is typed in once and never shown again."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from pydantic import ValidationError
from starlette.responses import Response

from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.errors import ClientError
from orchestrator.http.context import caller_of
from orchestrator.http.policy import READ, RUN, Policy
from orchestrator.provider_keys import routes as api
from orchestrator.scopes import Scope

router = page_router()

Id = Annotated[int, Path(ge=0, le=2**31 - 1)]
FIELDS = ("provider", "key", "name", "holder")


@router.get("/keys", policy=Policy(READ))
async def keys_page(page: Page) -> Response:
    return await keys_view(page)


@router.post("/keys", policy=Policy(RUN))
async def give_key(page: Page) -> Response:
    given = {name: values[-1] for name, values in (await page.form()).items() if name in FIELDS}
    answer = Response()
    try:
        made = await api.put_key(api.KeyCreate.model_validate(given), page.request, answer, page.context)
    except (ValidationError, ClientError) as error:
        given.pop("key", None)
        return await keys_view(page, 422, error=said(error), given=given)
    return await keys_view(
        page, answer.status_code, notice=f"The key for {made.provider} is stored; it ends in {made.hint}."
    )


@router.post("/keys/{key_id}/remove", policy=Policy(RUN))
async def remove_key(page: Page, key_id: Id) -> Response:
    await api.remove_key(key_id, page.request, page.context)
    return page.go("/keys")


async def keys_view(
    page: Frame,
    status: int = 200,
    *,
    error: str | None = None,
    notice: str | None = None,
    given: dict[str, str] | None = None,
) -> Response:
    caller = caller_of(page.request)
    found = (await api.list_keys(page.request, page.context)).items
    return page.show(
        "provider_keys/keys.html",
        status,
        keys=found,
        providers=sorted(page.context.accounts.keys.providers),
        may=caller.scope.allows(Scope.RUN),
        admin=caller.scope.allows(Scope.ADMIN),
        person=caller.user_id is not None,
        shared=page.context.settings.system_keys == "everyone",
        error=error,
        notice=notice,
        given=given or {},
    )
