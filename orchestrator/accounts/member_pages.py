"""Members of the workspace; for owners also all workspaces and all users."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import ValidationError
from starlette.responses import Response

from orchestrator.accounts import queries as account_queries
from orchestrator.accounts import routes as api
from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.errors import ClientError, Invalid
from orchestrator.http.context import caller_of
from orchestrator.http.policy import ADMIN, OWNER, Policy
from orchestrator.scopes import Role

router = page_router()

UserId = Annotated[int, Path(ge=0, le=2**31 - 1)]
ROLES = (Role.VIEWER, Role.MEMBER, Role.ADMIN)


@router.get("/members", policy=Policy(ADMIN))
async def members_page(page: Page) -> Response:
    return await _view(page)


@router.post("/members", policy=Policy(ADMIN))
async def add_member(page: Page) -> Response:
    form = await _form(page)
    try:
        body = api.MemberAdd(email=form.get("email", ""), role=_role(form))
        await api.add_member(caller_of(page.request).workspace, body, page.request, page.context)
    except (ValidationError, ClientError) as error:
        return await _view(page, 422, error=said(error))
    return page.go("/members")


@router.post("/members/name", policy=Policy(ADMIN))
async def rename(page: Page) -> Response:
    form = await _form(page)
    try:
        body = api.WorkspaceChange(name=form.get("name", ""))
        await api.rename_workspace(caller_of(page.request).workspace, body, page.request, page.context)
    except (ValidationError, ClientError) as error:
        return await _view(page, 422, error=said(error))
    return page.go("/members")


@router.post("/members/workspaces", policy=Policy(OWNER))
async def make_workspace(page: Page) -> Response:
    form = await _form(page)
    try:
        body = api.WorkspaceCreate(slug=form.get("slug", ""), name=form.get("name", ""))
        await api.create_workspace(body, page.context)
    except (ValidationError, ClientError) as error:
        return await _view(page, 422, error=said(error))
    return page.go("/members")


@router.post("/members/users/{user_id}", policy=Policy(OWNER))
async def change_user(page: Page, user_id: UserId) -> Response:
    form = await _form(page)
    given = {name: form[name] == "yes" for name in ("owner", "disabled") if name in form}
    await api.change_user(user_id, api.UserChange(**given), page.context)
    return page.go("/members")


@router.post("/members/{user_id}/role", policy=Policy(ADMIN))
async def change_role(page: Page, user_id: UserId) -> Response:
    slug = caller_of(page.request).workspace
    try:
        await page.context.accounts.members.put(slug, user_id, _role(await _form(page)))
    except ClientError as error:
        return await _view(page, error.status, error=error.detail)
    return page.go("/members")


@router.post("/members/{user_id}/remove", policy=Policy(ADMIN))
async def remove_member(page: Page, user_id: UserId) -> Response:
    await page.context.accounts.members.remove(caller_of(page.request).workspace, user_id)
    return page.go("/members")


async def _form(page: Frame) -> dict[str, str]:
    return {name: values[-1] for name, values in (await page.form()).items()}


def _role(form: dict[str, str]) -> Any:
    role = form.get("role", Role.VIEWER)
    if role not in ROLES:
        raise Invalid("role: viewer, member or admin")
    return Role(role)


async def _view(page: Frame, status: int = 200, *, error: str | None = None) -> Response:
    caller, context = caller_of(page.request), page.context
    owner = caller.role is Role.OWNER
    place = await context.db.read(lambda s: account_queries.by_slug(s, caller.workspace))
    members = (await api.list_members(caller.workspace, page.request, context)).items
    return page.show(
        "accounts/members.html",
        status,
        place=place,
        members=members,
        roles=[role.value for role in ROLES],
        places=await api.places_of(caller, context) if owner else [],
        users=(await api.list_users(context)).items if owner else [],
        error=error,
    )
