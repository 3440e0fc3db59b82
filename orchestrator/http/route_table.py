"""Finds the route and policy of a request before any layer decides about it.

FastAPI matches routes inside all layers, one regular expression after the other. Here routes are indexed by the first two
segments of their paths, so that only a handful must be tried, in the order of declaration. The route found here also handles
the request (`_Dispatch`), so what was checked is what runs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from fastapi import APIRouter, FastAPI
from starlette.routing import BaseRoute, Match, Mount, NoMatchFound, Route
from starlette.types import Receive, Scope, Send

from orchestrator.http.policy import ADMIN, ANYONE, MATCH, READ, Audit, Policy, RouteWithoutPolicy
from orchestrator.scopes import SAFE_METHODS
from orchestrator.scopes import Scope as Permission
from orchestrator.settings import Settings

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """What applies to a request; all requests of a route share one object."""

    policy: Policy
    body_cap: int | None
    deadline_s: float | None
    for_people: bool
    """Whether errors are rendered as pages."""
    route: Route | Mount | None = None
    """None if no route matches; the response will be 404 or 405."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Routes whose paths start with the same segments."""

    candidates: Sequence[tuple[Collection[str] | None, re.Pattern[str], RouteMatch]]
    safe_miss: RouteMatch
    unsafe_miss: RouteMatch


class RouteTable:
    """The routes of one application. Groups are gathered when the first request for them arrives: most of the routes are
    never used by a short-lived service."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._elsewhere = self._group([], [])
        self.read(())

    def serve(self, app: FastAPI) -> None:
        """Read the routes of `app`, and have its requests handled by the route found here. Call it again after adding
        routes. Raises `RouteWithoutPolicy`."""
        if not any(isinstance(route, _Dispatch) for route in app.routes):
            app.router.routes.insert(0, _Dispatch())
        self.read(app.routes)

    def read(self, routes: Iterable[BaseRoute]) -> None:
        """Replace the table's routes by these."""
        self._routes = [_with_policy(route) for route in routes if not isinstance(route, _Dispatch)]
        self._matches: dict[int, RouteMatch] = {}
        self._groups: dict[str, _Group] = {}
        self._by_first: dict[str, list[int]] = {}
        self._by_pair: dict[str, list[int]] = {}
        self._first_of: dict[str, str] = {}
        for number, (route, _) in enumerate(self._routes):
            first, pair = _leading(_literal(route))
            self._by_first.setdefault(first, []).append(number)
            self._by_pair.setdefault(pair, []).append(number)
            self._first_of[pair] = self._first_of[first] = first

    def apply(self, scope: Scope) -> RouteMatch:
        """Find the match of a request and store it in `scope` for the inner layers, with the ids in its path."""
        match = self.find(scope["method"], scope["path"])
        scope[MATCH] = match
        if isinstance(match.route, Route):
            scope.update(match.route.matches(scope)[1])
        return match

    def find(self, method: str, path: str) -> RouteMatch:
        first, pair = _leading(path)
        key = pair if pair in self._first_of else first
        group = self._groups.get(key) or self._gather(key)
        for methods, path_regex, match in group.candidates:
            if (methods is None or method in methods) and path_regex.match(path):
                return match
        if method == "HEAD":
            return replace(self.find("GET", path), route=None)
        return group.safe_miss if method in SAFE_METHODS else group.unsafe_miss

    def _gather(self, key: str) -> _Group:
        first = self._first_of.get(key)
        if first is None:
            return self._elsewhere
        alike = self._by_pair.get(key, [])
        candidates = sorted({*alike, *self._by_pair.get(first, [])})
        neighbours = sorted({*alike, *self._by_first.get(key, [])})
        group = self._group([self._match(number) for number in candidates], [self._match(number) for number in neighbours])
        self._groups[key] = group
        return group

    def _match(self, number: int) -> RouteMatch:
        if (match := self._matches.get(number)) is not None:
            return match
        route, policy = self._routes[number]
        if policy.open_on_loopback and self._settings.host in LOOPBACK:
            policy = replace(policy, scope=ANYONE)
        match = self._rules(policy, for_people=getattr(route, "for_people", False), route=route)
        self._matches[number] = match
        return match

    def _group(self, matches: Sequence[RouteMatch], neighbours: Sequence[RouteMatch]) -> _Group:
        """A request that matches no route is treated like its neighbours: it is open only if all of them are; otherwise
        reading needs the lowest scope of their GET routes, and changing needs an administrator."""
        policies = [neighbour.policy for neighbour in neighbours]
        reading = [
            neighbour.policy.scope for neighbour in neighbours if neighbour.route and "GET" in _methods(neighbour.route)
        ]
        scope = min(
            (permission for permission in reading if permission is not None), key=list(Permission).index, default=READ
        )
        miss = Policy(
            ANYONE if policies and all(policy.scope is ANYONE for policy in policies) else scope,
            audit=Audit.NEVER if policies and all(policy.audit is Audit.NEVER for policy in policies) else Audit.CHANGES,
            needs_workspace=not policies or any(policy.needs_workspace for policy in policies),
        )
        for_people = not neighbours or any(neighbour.for_people for neighbour in neighbours)
        unsafe = miss if miss.scope is ANYONE else replace(miss, scope=ADMIN)
        return _Group(
            [(_methods(match.route) or None, match.route.path_regex, match) for match in matches if match.route],
            self._rules(miss, for_people=for_people),
            self._rules(unsafe, for_people=for_people),
        )

    def _rules(self, policy: Policy, *, for_people: bool, route: Route | Mount | None = None) -> RouteMatch:
        deadline_s = self._settings.request_timeout_s if policy.deadline and not policy.streams else None
        return RouteMatch(policy, policy.body.cap(self._settings), deadline_s, for_people, route)


class _Dispatch(BaseRoute):
    """The first route of an application: passes the request to the route that the table found. Requests without a match
    go on to the other routes, which answer 404, 405, or redirect to the address without a trailing slash."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match: RouteMatch | None = scope.get(MATCH)
        if match is None or match.route is None:
            return Match.NONE, {}
        return match.route.matches(scope) if isinstance(match.route, Mount) else (Match.FULL, {})

    def url_path_for(self, name: str, /, **path_params: object) -> str:  # type: ignore[override]
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await scope[MATCH].route.handle(scope, receive, send)


def include(app: FastAPI, *routers: APIRouter) -> None:
    """Add their routes unchanged. FastAPI's own method creates every route again for each application."""
    for router in routers:
        app.router.routes.extend(router.routes)


def _leading(path: str) -> tuple[str, str]:
    """The first segment of a path, and the first two."""
    first = path.find("/", 1)
    if first < 0:
        return path, path
    second = path.find("/", first + 1)
    return path[:first], path if second < 0 else path[:second]


def _with_policy(route: BaseRoute) -> tuple[Route | Mount, Policy]:
    policy: Policy | None = getattr(route, "policy", None)
    if policy is None or not isinstance(route, Route | Mount):
        methods = " ".join(sorted(getattr(route, "methods", None) or ()))
        raise RouteWithoutPolicy(f"{methods} {getattr(route, 'path', repr(route))}".strip())
    return route, policy


def _literal(route: Route | Mount) -> str:
    literal, variable, _ = route.path.partition("{")
    return literal.rpartition("/")[0] if variable else literal


def _methods(route: Route | Mount) -> Collection[str]:
    """Empty means all methods."""
    return () if isinstance(route, Mount) else route.methods or ()
