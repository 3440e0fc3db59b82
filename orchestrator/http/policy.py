"""What a route needs, declared where the route is: `@router.post("/api/x", policy=Policy(RUN, spends=True))`.

A route without a policy is refused where it is declared. The route table finds the policy of a request before anything
of its body is read; the layers around the routes (guard, audit trail, gate, stream revocation) act on it.
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
"""Where a connection keeps the match that the route table found."""

ANYONE: Final = None
READ, RUN, SCHEDULE = Scope.READ, Scope.RUN, Scope.SCHEDULE
ADMIN, OWNER, AGENT = Scope.ADMIN, Scope.OWNER, Scope.AGENT


class Body(StrEnum):
    """How large a body may be."""

    SMALL = "small"  #: a few short fields, some of them from strangers: 64 KiB
    FORM = "max_body_bytes"  #: the JSON or the form of an ordinary request
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
    """What of a route's requests is recorded in the audit log."""

    CHANGES = "changes"  #: every request that may change something, and refusals
    REFUSALS = "refusals"  #: refusals alone: it changes nothing, or its runs have events of their own
    NEVER = "never"  #: nothing: runners report to the event log, model calls to the ledger


@dataclass(frozen=True, slots=True)
class Policy:
    scope: Scope | None
    """What the caller must be allowed to do; `ANYONE`: no sign-in is needed, or the handler checks a token of its own."""
    spends: bool = False
    """It starts something that asks models: refused early when the day's spending limit is reached."""
    body: Body = Body.FORM
    deadline: bool = True
    """Whether it must be done within `request_timeout_s`; transfers take as long as they take."""
    streams: bool = False
    """A stream of events, without a deadline, ended when the caller's sign-in or token ends."""
    audit: Audit = Audit.CHANGES
    needs_workspace: bool = True
    """False: also for somebody who is signed in but in no workspace."""
    open_on_loopback: bool = False
    """For anyone where the service listens on this machine alone."""


class RouteWithoutPolicy(TypeError):
    """A route does not say what it needs."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} has no policy: declare it on an orchestrator.http.policy.Router with policy=Policy(...), "
            "which says who may call it and what it needs"
        )


class PolicyRoute(APIRoute):
    """A route with a policy. It handles only requests whose policy was looked up, and so applied, as this route's own."""

    policy: Policy
    for_people = False
    """Whether it is a page: its refusals are pages too, and a stranger is led to the sign-in page."""

    async def handle(self, scope: Connection, receive: Receive, send: Send) -> None:
        match = scope.get(MATCH)
        if scope["method"] in (self.methods or ()) and (match is None or match.route is not self):
            raise RuntimeError(f"{scope['method']} {self.path} was reached without its policy having been applied")
        await super().handle(scope, receive, send)


def set_policy(route: BaseRoute, policy: Policy) -> None:
    """For what a framework has made: a mounted application, the OpenAPI document."""
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
