"""What a route requires, declared with the route: `@router.post("/api/x", policy=Policy(RUN, spends=True))`.

Declaring a route without a policy is an error. The route table finds the policy of a request before its body is read; the
layers around the routes (guard, audit trail, gate, stream revocation) enforce it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute
from starlette.types import Receive, Send
from starlette.types import Scope as Connection

from orchestrator.scopes import Scope
from orchestrator.settings import Settings

MATCH: Final = "benchyard.match"
"""Key in the connection's scope for the match that the route table found."""

ANYONE: Final = None
READ, RUN, SCHEDULE = Scope.READ, Scope.RUN, Scope.SCHEDULE
ADMIN, OWNER, AGENT = Scope.ADMIN, Scope.OWNER, Scope.AGENT


class Body(StrEnum):
    """The maximum size of a request body."""

    SMALL = "small"  #: a few short fields, some of them from strangers: 64 KiB
    FORM = "max_body_bytes"  #: the JSON or form of an ordinary request
    EVENTS = "max_event_body_bytes"  #: what runners, task runners and their model calls send
    FILE = "max_artefact_bytes"  #: a file of answers or traces
    DATASET = "max_upload_bytes"  #: a dataset
    UNLIMITED = "unlimited"  #: the handler counts while it reads

    def cap(self, settings: Settings) -> int | None:
        match self:
            case Body.SMALL:
                return 64 << 10
            case Body.UNLIMITED:
                return None
        cap: int = getattr(settings, self.value)
        return cap


class Audit(StrEnum):
    """Which requests of a route are recorded in the audit log."""

    CHANGES = "changes"  #: every request that may change something, and refusals
    REFUSALS = "refusals"  #: refusals only: it changes nothing, or its runs have their own events
    NEVER = "never"  #: none: runners report to the event log, model calls to the ledger


@dataclass(frozen=True, slots=True)
class Policy:
    scope: Scope | None
    """The required permission; `ANYONE`: no sign-in is needed, or the handler checks a token itself."""
    spends: bool = False
    """It starts something that calls models: refused early if the daily spending limit is reached."""
    body: Body = Body.FORM
    deadline: bool = True
    """Whether it must finish within `request_timeout_s`; transfers have no deadline."""
    streams: bool = False
    """An event stream, without a deadline; it ends when the caller's session or token does."""
    audit: Audit = Audit.CHANGES
    needs_workspace: bool = True
    """False: also for signed-in users who are in no workspace."""
    open_on_loopback: bool = False
    """Open to anyone if the service listens on this machine only."""


class RouteWithoutPolicy(TypeError):
    """A route declares no policy."""

    def __init__(self, route: str) -> None:
        super().__init__(
            f"{route} has no policy: declare it on an orchestrator.http.policy.Router with policy=Policy(...), "
            "which says who may call it and what it needs"
        )


class PolicyRoute(APIRoute):
    """A route with a policy. It handles only requests for which the route table found and applied this route's own
    policy."""

    policy: Policy
    for_people = False
    """Whether it is a page: its refusals are pages too, and strangers are sent to the sign-in page."""

    async def handle(self, scope: Connection, receive: Receive, send: Send) -> None:
        match = scope.get(MATCH)
        if scope["method"] in (self.methods or ()) and (match is None or match.route is not self):
            raise RuntimeError(f"{scope['method']} {self.path} was reached without its policy having been applied")
        await super().handle(scope, receive, send)


MODEL_CALLS = Policy(ANYONE, body=Body.EVENTS, deadline=False, audit=Audit.NEVER)
"""Of the gateway, which reads tokens and limits bodies itself."""


def set_policy(route: BaseRoute, policy: Policy) -> None:
    """For routes made by a framework: a mounted application, the OpenAPI document."""
    route.policy = policy  # type: ignore[attr-defined]


Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Router(APIRouter):
    """A router whose routes have policies. `route_class` must be a `PolicyRoute`."""

    def __init__(self, *, route_class: type[PolicyRoute] = PolicyRoute, **options: Any) -> None:
        super().__init__(route_class=route_class, **options)

    def get(self, path: str, *, policy: Policy | None = None, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._declare("GET", path, policy, options)

    def post(self, path: str, *, policy: Policy | None = None, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._declare("POST", path, policy, options)

    def put(self, path: str, *, policy: Policy | None = None, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._declare("PUT", path, policy, options)

    def patch(self, path: str, *, policy: Policy | None = None, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._declare("PATCH", path, policy, options)

    def delete(self, path: str, *, policy: Policy | None = None, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._declare("DELETE", path, policy, options)

    def _declare(
        self, method: str, path: str, policy: Policy | None, options: dict[str, Any]
    ) -> Callable[[Endpoint], Endpoint]:
        def declare(endpoint: Endpoint) -> Endpoint:
            if policy is None:
                raise RouteWithoutPolicy(f"{method} {self.prefix}{path} ({endpoint.__module__}.{endpoint.__qualname__})")
            self.add_api_route(path, endpoint, methods=[method], **options)
            set_policy(self.routes[-1], policy)
            return endpoint

        return declare
