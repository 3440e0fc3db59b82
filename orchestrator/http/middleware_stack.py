"""The layers around the gate, from the outside: proxies, other origins, sub-path, guard, audit."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from orchestrator.http.audit_trail import AuditTrail
from orchestrator.http.cross_origin import cross_origin
from orchestrator.http.guard import Guard
from orchestrator.http.proxies import TrustedProxies
from orchestrator.http.route_table import RouteTable
from orchestrator.http.sub_path import SubPath
from orchestrator.runs.alias_routes import PathAliases
from orchestrator.settings import Settings


def add_outer_layers(app: FastAPI, settings: Settings, routes: RouteTable) -> None:
    """The last one added is the outermost; all of them come before any parsing."""
    app.add_middleware(AuditTrail, book=app.state.audit)
    app.add_middleware(Guard, routes=routes)
    app.add_middleware(PathAliases)
    app.add_middleware(SubPath, root=settings.root)
    if settings.cors_origins:
        app.add_middleware(CORSMiddleware, **cross_origin(settings.cors_origins))
    if settings.trusted_proxies:
        app.add_middleware(TrustedProxies, networks=settings.trusted_proxies)
