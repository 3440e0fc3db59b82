"""Pages: sign-in, the list of runs, the API reference. Model output is text here, never HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, select_autoescape
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.api.auth import COOKIE, Authority
from orchestrator.api.context import Context
from orchestrator.dashboard.reference import endpoints
from orchestrator.dashboard.views import RunLine, run_line
from orchestrator.db import model_queries, run_queries

HERE = Path(__file__).parent
router = APIRouter(include_in_schema=False)
environment = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=select_autoescape(default=True))


def install(app: FastAPI) -> None:
    app.include_router(router)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")


def page(name: str, status: int = 200, **values: object) -> HTMLResponse:
    return HTMLResponse(environment.get_template(name).render(**values), status, headers={"cache-control": "no-store"})


@router.get("/")
async def runs_page(context: Context) -> Response:
    def read(session: Session) -> list[RunLine]:
        rows = run_queries.page(session, limit=100)
        models = model_queries.by_ids(session, {row.model_id for row in rows})
        return [run_line(row, models[row.model_id].slug) for row in rows]

    lines = await context.db.read(read)
    hold = context.fleet.hold()
    info = context.fleet.info
    return page(
        "runs.html",
        runs=lines,
        banner=hold.sentence if hold else None,
        isolation=info.isolation if info and info.less_isolated else None,
        live=any(line.live for line in lines),
    )


@router.get("/login")
async def login_page(request: Request, token: Annotated[str | None, Query(max_length=200)] = None) -> Response:
    if token is None:
        return page("login.html", error=None)
    return _sign_in(request, token)


@router.post("/login")
async def login(request: Request) -> Response:
    form = parse_qs((await request.body()).decode("utf-8", "replace"))
    return _sign_in(request, form.get("token", [""])[0].strip())


@router.get("/docs")
async def reference(request: Request) -> Response:
    return page("docs.html", endpoints=endpoints(request.app.openapi()))


def _sign_in(request: Request, token: str) -> Response:
    authority: Authority = request.app.state.authority
    if not authority.is_token(token):
        return page("login.html", 401, error="That is not the token. It is in the file “token” of the data directory.")
    response = RedirectResponse("/", 303)
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, authority.session, max_age=30 * 24 * 3600, httponly=True, samesite="strict", secure=secure)
    return response
