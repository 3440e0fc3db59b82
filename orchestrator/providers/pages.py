"""Provider pages: those of the environment and stored ones, a form for each, a test by real calls, what was learned."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Path
from pydantic import ValidationError
from starlette.responses import Response

from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.errors import ClientError, Invalid
from orchestrator.gateway.upstream.kinds.table import KINDS
from orchestrator.http.audit_trail import note
from orchestrator.http.context import caller_of
from orchestrator.http.policy import OWNER, READ, Policy
from orchestrator.providers.probe import Findings
from orchestrator.providers.schemas import ProviderCreate, ProviderPatch
from orchestrator.providers.views import described
from runner.contract.run_spec import Protocol

router = page_router()

Name = Annotated[str, Path(min_length=1, max_length=100)]
TEXTS = (
    *("kind", "base_url", "key", "key_variable", "key_file", "proxy", "ca_bundle", "client_cert", "client_key"),
    *("list_path", "api_version"),
)
SWITCHES = ("allow_private", "list_without_key")
UNSHOWN = ("key", "headers", "proxy")
"""Empty means unchanged: what is stored is not in the form."""


@router.get("/providers", policy=Policy(READ))
async def providers_page(page: Page) -> Response:
    return await _show(page)


@router.post("/providers", policy=Policy(OWNER))
async def add_provider(page: Page) -> Response:
    form = _plain(await page.form())
    try:
        body = ProviderCreate.model_validate({"name": form.get("name", ""), **_fields(form, new=True)})
        row = await page.context.providers.service.add(body.name, *body.parts(), by=caller_of(page.request).name)
    except (ValidationError, ClientError) as error:
        return await _show(page, 422, error=said(error), given=_shown(form))
    note(page.request.scope, object_id=row.name, detail=f"{row.name}, {row.origin}")
    return await _show(page, 201, notice=f"Provider {row.name} added. It can be used at once.")


@router.post("/providers/{name}", policy=Policy(OWNER))
async def change_provider(page: Page, name: Name) -> Response:
    form = _plain(await page.form())
    try:
        body = ProviderPatch.model_validate(_fields(form, new=False))
        row = await page.context.providers.service.change(name, *body.changes())
    except (ValidationError, ClientError) as error:
        return await _show(page, 422, error=said(error))
    note(page.request.scope, detail=f"{row.name}, {row.origin}")
    return await _show(page, notice=f"Provider {row.name} changed.")


@router.post("/providers/{name}/test", policy=Policy(OWNER, spends=True, deadline=False))
async def try_provider(page: Page, name: Name) -> Response:
    form = _plain(await page.form())
    try:
        found = await page.context.providers.probe.run(name, form.get("model") or None)
    except ClientError as error:
        return await _show(page, 422, error=said(error))
    return await _show(page, found=found)


@router.post("/providers/{name}/forget", policy=Policy(OWNER))
async def forget_learned(page: Page, name: Name) -> Response:
    form = _plain(await page.form())
    await page.context.providers.learned.forget(name, form.get("model") or None)
    return page.go("/providers")


@router.post("/providers/{name}/remove", policy=Policy(OWNER))
async def remove_provider(page: Page, name: Name) -> Response:
    await page.context.providers.service.remove(name)
    return page.go("/providers")


async def _show(
    page: Frame,
    status: int = 200,
    *,
    error: str | None = None,
    notice: str | None = None,
    given: dict[str, str] | None = None,
    found: Findings | None = None,
) -> Response:
    return page.show(
        "providers/providers.html",
        status,
        providers=await described(page.context),
        kinds=list(KINDS.values()),
        protocols=list(Protocol),
        error=error,
        notice=notice,
        given=given or {},
        found=found,
    )


def _plain(form: dict[str, list[str]]) -> dict[str, str]:
    return {name: ",".join(values) if name == "protocols" else values[-1].strip() for name, values in form.items()}


def _shown(form: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in form.items() if name not in UNSHOWN}


def _fields(form: dict[str, str], *, new: bool) -> dict[str, Any]:
    """The form as the API expects it."""
    fields: dict[str, Any] = {}
    for name in TEXTS:
        if form.get(name):
            fields[name] = form[name]
        elif not new and name not in UNSHOWN:
            fields[name] = None
    if form.get("headers"):
        fields["headers"] = _headers(form["headers"])
    fields |= {name: form.get(name) == "on" for name in SWITCHES}
    protocols = [name for name in form.get("protocols", "").split(",") if name]
    if protocols or not new:
        fields["protocols"] = protocols or None
    for name in UNSHOWN:
        if form.get(f"no_{name}") == "on":
            fields[name] = None
    return fields


def _headers(text: str) -> dict[str, str]:
    """One `Name: value` in each line, or a JSON object."""
    if text.startswith("{"):
        try:
            found: dict[str, str] = json.loads(text)
        except ValueError:
            raise Invalid("headers: write one `Name: value` in each line") from None
        return found
    headers = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, value = line.partition(":")
        if not colon:
            raise Invalid("headers: write one `Name: value` in each line")
        headers[name.strip()] = value.strip()
    return headers
