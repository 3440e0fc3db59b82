"""Cookies as they must be: not for scripts, not for other sites' requests, over TLS only where there is TLS."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import Response

from orchestrator.settings import Settings


def put_cookie(
    response: Response,
    connection: HTTPConnection,
    settings: Settings,
    name: str,
    value: str,
    max_age_s: int,
    path: str = "/",
) -> None:
    # Lax, so that a link in a message opens its page; changes need a request of our own pages in any case.
    response.set_cookie(
        name,
        value,
        max_age=max_age_s,
        path=_path(settings, path),
        httponly=True,
        samesite="lax",
        secure=over_https(connection, settings),
    )


def drop_cookie(response: Response, settings: Settings, name: str, path: str = "/") -> None:
    response.delete_cookie(name, path=_path(settings, path))


def _path(settings: Settings, path: str) -> str:
    return f"{settings.root}{path}".rstrip("/") or "/"


def cookie_line(connection: HTTPConnection, settings: Settings, name: str, value: str, max_age_s: int) -> bytes:
    """The header for answers that others make."""
    response = Response()
    put_cookie(response, connection, settings, name, value, max_age_s)
    return response.headers["set-cookie"].encode("latin-1")


def over_https(connection: HTTPConnection, settings: Settings) -> bool:
    """As the browser sees it; a proxy in between may speak plain HTTP to us."""
    public = urlsplit(settings.public_url or "")
    at_public = connection.headers.get("host") == public.netloc and public.scheme == "https"
    said = connection.headers.get("origin") or connection.headers.get("x-forwarded-proto") or connection.url.scheme
    return at_public or said.startswith("https")
