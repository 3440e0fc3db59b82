"""The form that starts a run of kind `harness`: a preset with a task, or a command in an allowed image."""

from __future__ import annotations

import shlex
from typing import Any

from fastapi import Request
from pydantic import ValidationError
from starlette.responses import Response

from orchestrator.commands.words import read_variable
from orchestrator.dashboard.rendering.typed import number, whole
from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.db.idempotency import keyed
from orchestrator.errors import ClientError, Invalid
from orchestrator.harnesses.presets import PRESETS, preset_harness
from orchestrator.harnesses.schemas import HarnessRunCreate
from orchestrator.harnesses.service import CONCURRENCY
from orchestrator.http.policy import READ, RUN, Policy
from orchestrator.models import queries as model_queries
from orchestrator.runs.scheduling.capacity import never_fits
from orchestrator.system.identifiers import new_token
from runner.contract.harness import ResultsFormat

router = page_router()


@router.get("/runs/new/harness", policy=Policy(READ))
async def new_harness_page(page: Page, request: Request) -> Response:
    return await _form(page, {name: value.strip() for name, value in list(request.query_params.items())[:40]})


@router.post("/runs/new/harness", policy=Policy(RUN, spends=True))
async def start_harness(page: Page) -> Response:
    texts = {name: values[-1].strip().replace("\r\n", "\n") for name, values in (await page.form()).items()}
    try:
        body = HarnessRunCreate.model_validate(_body(texts))
        key = keyed("POST /api/container-runs", texts.get("key", "")[:200] or None)
        run_id = await page.context.harnesses.create(body.request(page.context.settings.reuse_answers), key)
    except (ValidationError, ClientError) as error:
        return await _form(page, texts, said(error))
    return page.go(f"/runs/{run_id}")


def _body(texts: dict[str, str]) -> dict[str, Any]:
    """The request body for the API. A text that is not a number stays text, so that the API reports it."""
    body: dict[str, Any] = {"kind": "harness", "model_id": texts.get("model", ""), "harness": _harness(texts)}
    if text := texts.get("budget_usd"):
        body["budget_usd"] = number(text)
    if text := texts.get("concurrency"):
        body["concurrency"] = whole(text)
    if text := texts.get("instance_type"):
        body["instance_type"] = text
    return body


def _harness(texts: dict[str, str]) -> dict[str, Any]:
    file = {"name": texts.get("file_name", ""), "content": texts.get("file", "") + "\n"}
    files = [file] if texts.get("file_name") or texts.get("file") else []
    if name := texts.get("preset"):
        if texts.get("command"):
            raise Invalid("command: choose a preset with a task, or give a command without a preset")
        if name not in PRESETS:
            raise Invalid(f"preset: there is no preset {name[:100]!r}: {' or '.join(PRESETS)}")
        if not (task := texts.get("task")):
            raise Invalid("task: say which task the preset runs: the file below, or a task that is in its image")
        harness = preset_harness(PRESETS[name], task, files, _arguments(texts.get("arguments", "")))
    else:
        results: dict[str, Any] = {"format": texts.get("format", ResultsFormat.JSON_LINES.value)}
        if paths := texts.get("paths", "").split():
            results["paths"] = paths
        harness = {"image": texts.get("image", ""), "command": texts.get("command", ""), "files": files, "results": results}
    harness["env"] = dict(map(_variable, filter(None, map(str.strip, texts.get("env", "").splitlines()))))
    return {**harness, "name": texts["name"]} if texts.get("name") else harness


def _arguments(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise Invalid(f"arguments: {text[:100]!r} cannot be split as a shell would: {error}") from None


def _variable(line: str) -> tuple[str, str]:
    try:
        return read_variable(line)
    except ValueError as error:
        raise Invalid(f"env: {line[:100]!r} {error}") from None


async def _form(page: Frame, texts: dict[str, str], error: str | None = None) -> Response:
    settings, capacity = page.context.settings, page.context.fleet.capacity()
    types = [settings.instance_type(name) for name in settings.instance_types]
    return page.show(
        "harnesses/new_harness.html",
        422 if error else 200,
        error=error,
        models=await page.context.db.read(lambda s: list(model_queries.page(s, limit=1000))),
        presets=PRESETS.values(),
        formats=[result.value for result in ResultsFormat],
        own_image=settings.runner_image,
        allowed=settings.command_images,
        texts={"image": settings.runner_image, "concurrency": str(CONCURRENCY), **texts},
        types=[(name, never_fits(capacity, name) if capacity else None) for name in types],
        default_type=texts.get("instance_type") or settings.default_instance_type,
        key=new_token(),
    )
