"""Renders errors as RFC 9457 problem+json: one renderer for all, and the handlers that call it."""

from __future__ import annotations

import errno
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from orchestrator.db.session import CommitUncertain, DatabaseUnavailable, NotStorable
from orchestrator.errors import Code, Invalid, NoDatabase, NoSpace, ServiceError, Unavailable
from orchestrator.http.policy import PolicyRoute

log = structlog.get_logger()

TAG = "kind="
"""Prefix of the names of a body's alternatives; no field name starts with it."""
MAX_REPORTED = 5
CLIENT_HUNG_UP = 499
UNCERTAIN = (
    "Its connection broke during the commit, so it is not known whether this was stored: look before you try again, or send "
    "the same Idempotency-Key."
)
DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

_CODES = {
    400: Code.VALIDATION_ERROR,
    401: Code.UNAUTHORIZED,
    403: Code.FORBIDDEN,
    404: Code.NOT_FOUND,
    405: Code.METHOD_NOT_ALLOWED,
    413: Code.TOO_LARGE,
    415: Code.VALIDATION_ERROR,
    422: Code.VALIDATION_ERROR,
}


def problem(
    status: int,
    code: Code,
    title: str,
    detail: str,
    *,
    request_id: str,
    headers: dict[str, str] | None = None,
    extra: dict[str, Any] | None = None,
) -> Response:
    body = {
        **(extra or {}),
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": _whole(detail),
        "code": code.value,
        "request_id": request_id,
    }
    return JSONResponse(body, status, headers, media_type="application/problem+json")


def render(error: ServiceError, request_id: str) -> Response:
    return problem(
        error.status,
        error.code,
        error.title,
        error.detail,
        request_id=request_id,
        headers=error.headers,
        extra=error.extra,
    )


class DatabaseErrorRoute(PolicyRoute):
    """A route where an unavailable database is a DATABASE_ERROR, as callers of evals, traces and jobs expect."""


def request_id_of(request: Request) -> str:
    return str(request.scope.get("benchyard.request_id", ""))


def install(app: FastAPI) -> None:
    """Make every error of `app` a problem response."""

    @app.exception_handler(ServiceError)
    async def _service(request: Request, error: ServiceError) -> Response:
        return render(error, request_id_of(request))

    @app.exception_handler(DatabaseUnavailable)
    async def _database(request: Request, error: DatabaseUnavailable) -> Response:
        log.warning("database unavailable", action="database_unavailable", error=str(error))
        stored = UNCERTAIN if isinstance(error, CommitUncertain) else "Nothing was stored; try again shortly."
        sentence = f"The database cannot be used now ({error}). {stored}"
        kind = NoDatabase if isinstance(request.scope.get("route"), DatabaseErrorRoute) else Unavailable
        return render(kind(sentence), request_id_of(request))

    @app.exception_handler(NotStorable)
    async def _misfit(request: Request, error: NotStorable) -> Response:
        sentence = f"The request has a text or number that cannot be stored ({error}); nothing was stored."
        return render(Invalid(sentence), request_id_of(request))

    @app.exception_handler(OSError)
    async def _disk(request: Request, error: OSError) -> Response:
        if error.errno not in DISK_FULL:
            raise error
        log.warning("disk full", action="disk_full", error=str(error))
        return render(NoSpace("The disk is full; nothing was stored. Make room and try again."), request_id_of(request))

    @app.exception_handler(RequestValidationError)
    async def _validation(request: Request, error: RequestValidationError) -> Response:
        errors = error.errors()
        sentences = [_sentence(item) for item in errors[:MAX_REPORTED]]
        if len(errors) > MAX_REPORTED:
            sentences.append(f"and {len(errors) - MAX_REPORTED} more")
        fields = [{"field": _whole(_where(item)), "message": _whole(str(item["msg"]))} for item in errors[:MAX_REPORTED]]
        return problem(
            422,
            Code.VALIDATION_ERROR,
            "Request not valid",
            "; ".join(sentences),
            request_id=request_id_of(request),
            extra={"errors": fields},
        )

    @app.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        title = HTTPStatus(error.status_code).phrase
        detail = str(error.detail)
        if error.status_code == 404 and detail == title:
            detail = f"There is nothing at {request.url.path}; /docs lists every path."
        if error.status_code == 405:
            detail = f"{request.method} is not possible at {request.url.path}; /docs lists what is."
        code = _CODES.get(error.status_code, Code.INTERNAL_ERROR if error.status_code >= 500 else Code.VALIDATION_ERROR)
        headers = dict(error.headers or {})
        return problem(error.status_code, code, title, detail, request_id=request_id_of(request), headers=headers)

    @app.exception_handler(ClientDisconnect)
    async def _hung_up(request: Request, _error: ClientDisconnect) -> Response:
        """Nobody reads this response; the status is the one that proxies log for a client that disconnected."""
        log.debug("client hung up", action="client_hung_up", path=request.url.path)
        return Response(status_code=CLIENT_HUNG_UP)

    @app.exception_handler(Exception)
    async def _unexpected(request: Request, error: Exception) -> Response:
        request_id = request_id_of(request)
        log.error("unexpected error", action="internal_error", request_id=request_id, exc_info=error)
        detail = f"Something went wrong on our side; the log has it under request {request_id}."
        return problem(500, Code.INTERNAL_ERROR, "Internal error", detail, request_id=request_id)


async def not_found(scope: Scope, receive: Receive, send: Send) -> None:
    """An application without any routes."""
    raise HTTPException(404)


def _whole(text: str) -> str:
    """Replace lone surrogates, which a body may use in a field name but no response can carry."""
    return text.encode("utf-8", "replace").decode()


def _where(error: dict[str, Any]) -> str:
    location = [str(part) for part in error["loc"] if part not in ("body", "query", "path", "header")]
    return ".".join(part for part in location if not part.startswith(TAG))


def _sentence(error: dict[str, Any]) -> str:
    where, message = _where(error), str(error["msg"])
    if error["type"] == "json_invalid":
        return f"the body is not valid JSON ({error.get('ctx', {}).get('error', 'cannot be parsed')})"
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown field; /docs lists the fields"
    if error["type"] == "missing" and not where:
        return "a JSON body is required"
    message = message.removeprefix("Value error, ")
    return f"{where}: {message}" if where else message
