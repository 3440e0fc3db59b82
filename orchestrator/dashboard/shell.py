"""What every page shares: the layout, links under a sub-path, forms, errors as pages instead of JSON."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, urlencode

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from pydantic import ValidationError
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.dashboard import texts
from orchestrator.dashboard.assets import browser_packages, version
from orchestrator.db.session import DatabaseUnavailable
from orchestrator.errors import ClientError, ServiceError
from orchestrator.http.access.identity import Caller
from orchestrator.http.context import Services, caller_of, services_of
from orchestrator.http.policy import PolicyRoute, Router
from orchestrator.http.route_table import RouteTable
from orchestrator.jobs.views import kind_words, page_path
from orchestrator.runs.live import queries as event_queries

HERE = Path(__file__).parent
HEADERS = {
    "cache-control": "no-store",
    # With no-referrer, a browser sends "Origin: null" with a form, and authentication could not tell our forms from foreign
    # ones.
    "referrer-policy": "same-origin",
}
environment = Environment(
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=select_autoescape(default=True),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
for _name in (
    "percent",
    "points",
    "interval",
    "estimate",
    "when",
    "iso",
    "duration",
    "size",
    "money",
    "cost",
    "payer",
    "number",
    "words",
    "visible",
    "without",
    "short",
):
    environment.filters[_name] = getattr(texts, _name)
environment.globals["assets"], environment.globals["packages"] = version(), browser_packages()
environment.filters["kind"], environment.filters["place"] = kind_words, page_path


@dataclass(frozen=True)
class Frame:
    """One request for a page. Created before any read, so that events after `number` are new to the page."""

    request: Request
    context: Services
    number: int

    @property
    def root(self) -> str:
        return self.context.settings.root

    def show(self, template: str, status: int = 200, **values: object) -> HTMLResponse:
        hold, info = self.context.fleet.hold(), self.context.fleet.info
        return draw(
            template,
            status,
            root=self.root,
            path=self.request.scope["path"],
            number=self.number,
            caller=caller_of(self.request),
            may_post=may_post(self.request),
            banner=hold.sentence if hold else None,
            copy_notice=self.context.installation.notice,
            isolation=info.isolation if info and info.less_isolated else None,
            **values,
        )

    def go(self, path: str, **query: str) -> RedirectResponse:
        """Redirects the browser after a form was accepted."""
        tail = f"?{urlencode(query)}" if query else ""
        return RedirectResponse(f"{self.root}{path}{tail}", 303)

    async def raw_form(self) -> dict[str, str]:
        """The fields of a form as entered, including surrounding blanks."""
        body = (await self.request.body()).decode("utf-8", "replace")
        return {name: values[-1] for name, values in parse_qs(body, max_num_fields=100, keep_blank_values=True).items()}

    async def form(self) -> dict[str, list[str]]:
        """The fields of a form that were filled in."""
        body = (await self.request.body()).decode("utf-8", "replace")
        return {name: [value.strip() for value in values] for name, values in parse_qs(body, max_num_fields=100).items()}


def draw(template: str, status: int, **values: object) -> HTMLResponse:
    return HTMLResponse(environment.get_template(template).render(**values), status, headers=HEADERS)


async def _frame(request: Request, context: Annotated[Services, Depends(services_of)]) -> Frame:
    def read(session: Session) -> int:
        return event_queries.last_number(session)

    return Frame(request, context, await context.db.read(read))


Page = Annotated[Frame, Depends(_frame)]
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class PageRoute(PolicyRoute):
    """A route whose errors are pages."""

    for_people = True

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            try:
                return await handle(request)
            except ServiceError as error:
                return error_page(request, error.status, error.detail)
            except DatabaseUnavailable as error:
                return error_page(request, 503, f"The database is unavailable ({error}). Try again shortly.")
            except RequestValidationError as error:
                where = "; ".join(f"{problem['loc'][-1]}: {problem['msg']}" for problem in error.errors()[:5])
                return error_page(request, 422, f"The address has a value that cannot be used ({where}).")

        return handler


def page_router() -> Router:
    return Router(include_in_schema=False, route_class=PageRoute)


TITLES = {
    400: "Bad request",
    403: "Not allowed",
    404: "Not found",
    409: "Not possible now",
    422: "Invalid input",
    500: "Internal error",
}


def error_page(request: Request, status: int, detail: str) -> Response:
    title = TITLES.get(status) or HTTPStatus(status).phrase
    return draw("shell/error.html", status, **bare(request), title=title, code=status, detail=texts.for_people(detail))


def bare(request: Request) -> dict[str, object]:
    """The template values for a page that shows nothing from the database."""
    services: Services | None = getattr(request.app.state, "services", None)
    caller = request.scope.get("benchyard.caller")
    root = services.settings.root if services else ""
    return {"root": root, "path": None, "number": None, "caller": caller, "may_post": may_post(request)}


def may_post(request: Request) -> Callable[[str], bool]:
    """Whether the caller may submit a form; forms that would be refused are not shown."""
    caller: Caller | None = request.scope.get("benchyard.caller")
    routes: RouteTable = request.app.state.routes

    def may(path: str) -> bool:
        needed = routes.find("POST", path).policy.scope
        return caller is None or needed is None or caller.scope.allows(needed)

    return may


def said(error: ValidationError | ClientError) -> str:
    """The message for an invalid form."""
    if isinstance(error, ClientError):
        return texts.for_people(error.detail)
    return "; ".join(
        f"{'.'.join(map(str, problem['loc'])) or 'the form'}: {problem['msg']}" for problem in error.errors()[:5]
    )
