"""The form that measures a command in a run of kind `command`."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request
from pydantic import ValidationError
from starlette.responses import Response

from orchestrator.commands.results import load
from orchestrator.commands.schemas import CommandOut, CommandRunCreate
from orchestrator.commands.words import figure_words, read_figure, read_variable
from orchestrator.dashboard.rendering.typed import number, whole
from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.db.idempotency import keyed
from orchestrator.errors import ClientError
from orchestrator.http.policy import READ, RUN, Policy
from orchestrator.runs.scheduling.capacity import never_fits
from orchestrator.system.identifiers import new_token
from runner.contract.commands import CommandTask

T = TypeVar("T")

router = page_router()

WHOLE = ("repeats", "warmups")
USUAL = {"repeats": "5", "warmups": "1", "timeout_s": "600"}
SHELL = ["/bin/sh", "-c"]


@router.get("/runs/new/command", policy=Policy(READ))
async def new_command_page(page: Page, request: Request) -> Response:
    texts = {name: value.strip() for name, value in list(request.query_params.items())[:40]}
    if (like := texts.get("like")) is not None:
        texts = await _like(page, like) | texts
    return await _form(page, texts)


@router.post("/runs/new/command", policy=Policy(RUN, spends=True))
async def measure_command(page: Page) -> Response:
    texts = {name: values[-1].strip() for name, values in (await page.form()).items()}
    try:
        fields = _body(texts)
        if source := texts.get("files_of"):
            fields["command"]["files"] = await _files_of(page, source)
        body = CommandRunCreate.model_validate(fields)
        key = keyed("POST /api/container-runs", texts.get("key", "")[:200] or None)
        run_id = await page.context.commands.create(body.request(), key)
    except (ValidationError, ClientError) as error:
        return await _form(page, texts, said(error))
    except _BadLine as error:
        return await _form(page, texts, str(error))
    return page.go(f"/runs/{run_id}")


class _BadLine(Exception):
    """A line of the form that cannot be parsed."""


def _body(texts: dict[str, str]) -> dict[str, Any]:
    """The request body for the API. A text that is not a number stays text, so that the API reports it."""
    command: dict[str, Any] = {"image": texts.get("image", ""), "command": texts.get("command", "")}
    for name in ("name", "workdir"):
        if text := texts.get(name):
            command[name] = text
    for name in WHOLE:
        if text := texts.get(name):
            command[name] = whole(text)
    if text := texts.get("timeout_s"):
        command["timeout_s"] = number(text)
    command["figures"] = _lines(texts, "figures", read_figure)
    command["env"] = dict(_lines(texts, "env", read_variable))
    return {"kind": "command", "command": command, "instance_type": texts.get("instance_type") or None}


def _lines(texts: dict[str, str], name: str, read: Callable[[str], T]) -> list[T]:
    """The parsed lines of a field."""
    values = []
    for line in filter(None, map(str.strip, texts.get(name, "").splitlines())):
        try:
            values.append(read(line))
        except ValueError as error:
            raise _BadLine(f"{name}: {line[:100]!r} {error}.") from None
    return values


async def _like(page: Frame, run_id: str) -> dict[str, str]:
    """The form values of an earlier run; empty if it is not a command run."""
    try:
        run = await page.context.db.read(lambda session: CommandOut.of(load(session, run_id)))
    except ClientError:
        return {}
    task = CommandTask.model_validate({**run.task, "files": []})
    texts = {
        "image": task.image,
        "command": task.argv[2] if task.argv[:2] == SHELL and len(task.argv) == 3 else shlex.join(task.argv),
        "name": task.name,
        "workdir": task.workdir or "",
        "repeats": str(task.repeats),
        "warmups": str(task.warmups),
        "timeout_s": f"{task.timeout_s:g}",
        "env": "\n".join(f"{name}={value}" for name, value in task.env.items()),
        "figures": "\n".join(figure_words(figure) for figure in task.figures),
    }
    if files := run.task["files"]:
        texts |= {"files_of": run_id, "files": ", ".join(file["name"] for file in files)}
    return {**texts, "instance_type": run.instance_type}


async def _files_of(page: Frame, run_id: str) -> list[dict[str, Any]]:
    """The files of an earlier run, in the form that the API accepts."""
    task = (await page.context.db.read(lambda session: load(session, run_id))).task
    return [{"name": file.name, "content_base64": file.content, "executable": file.executable} for file in task.files]


async def _form(page: Frame, texts: dict[str, str], error: str | None = None) -> Response:
    settings, capacity = page.context.settings, page.context.fleet.capacity()
    types = [settings.instance_type(name) for name in settings.instance_types]
    return page.show(
        "commands/new_command.html",
        422 if error else 200,
        error=error,
        own_image=settings.runner_image,
        allowed=settings.command_images,
        texts={**USUAL, "image": settings.runner_image, **texts},
        types=[(name, never_fits(capacity, name) if capacity else None) for name in types],
        default_type=texts.get("instance_type") or settings.default_instance_type,
        key=new_token(),
    )
