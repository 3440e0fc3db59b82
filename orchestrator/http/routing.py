"""What holds for which path: who must be signed in, how large a body may be, how long it may take. Pure."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.scopes import FOR_TASK_RUNNERS
from orchestrator.settings import Settings

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
OPEN = (
    "/healthz",
    "/readyz",
    "/login",
    "/static/",
    "/shared/",
    "/runner/",
    "/gateway/",
    "/tasks/",
    "/docs",
    "/openapi.json",
    "/favicon.ico",
)
SMALL_BODY_BYTES = 64 << 10
"""Where a few short fields are all there is, some of them from strangers."""
UPLOADS = ("/api/grades", "/api/traces")
EVAL_PATHS = ("/api/eval-sets", "/api/evals", "/api/traces", "/api/jobs")
"""Where a database that is away is a DATABASE_ERROR, as their callers expect."""
ENDLESS = ("/api/events", "/gateway/", "/api/datasets/", "/datasets/", *UPLOADS)


def needs_of(settings: Settings) -> Callable[[str], str | None]:
    """Which paths need a token: "api", "page" or None. The runner paths check tokens of their own."""

    def needs(path: str) -> str | None:
        if path in ("/api/auth/login", "/api/auth/status"):
            return None
        if path.startswith(("/api/", "/run/")) or path == "/api" or path in FOR_TASK_RUNNERS:
            return "api"
        if path == "/metrics":
            return None if settings.host in LOOPBACK else "api"
        if path.startswith(OPEN):
            return None
        return "page"

    return needs


def body_cap_of(settings: Settings) -> Callable[[str], int | None]:
    def cap(path: str) -> int | None:
        if path in FOR_TASK_RUNNERS:
            return settings.max_event_body_bytes
        if path in ("/runner/claim", "/login"):
            return SMALL_BODY_BYTES
        if path.startswith(("/runner/", "/tasks/")):
            return None if "/artefacts/" in path else settings.max_event_body_bytes
        if path.startswith("/gateway/"):
            return settings.max_event_body_bytes
        if path.startswith("/api/datasets/"):
            return settings.max_upload_bytes
        if path.startswith(UPLOADS):
            return settings.max_artefact_bytes
        return settings.max_body_bytes

    return cap


def deadline_of(settings: Settings) -> Callable[[str], float | None]:
    def deadline(path: str) -> float | None:
        endless = (
            path.startswith(ENDLESS)
            or path.endswith(("/stream", "/problems", "/traces", "/export", "/archive"))
            or "/artefacts/" in path
        )
        return None if endless else settings.request_timeout_s

    return deadline
