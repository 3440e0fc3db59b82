"""Under a sub-path (`BENCHYARD_PUBLIC_URL=https://lab.example/bench`): requests are taken with the path in front and
without, since proxies differ in whether they strip it, and addresses in answers have it."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class SubPath:
    """The outermost layer. `root` is the path, without a slash at its end; empty if there is none."""

    def __init__(self, app: ASGIApp, *, root: str) -> None:
        self._app = app
        self._root = root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        host = Headers(scope=scope).get("host", "")

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if (location := headers.get("location")) is not None:
                    headers["location"] = self._outside(location, host)
            await send(message)

        if self._root and (scope["path"] == self._root or scope["path"].startswith(f"{self._root}/")):
            scope = {**scope, "path": scope["path"].removeprefix(self._root) or "/"}
            scope["raw_path"] = scope.get("raw_path", b"").removeprefix(self._root.encode())
        await self._app(scope, receive, told)

    def _outside(self, location: str, host: str) -> str:
        """Where the browser has to go; never with the host, which a proxy may have changed."""
        parts = urlsplit(location)
        if parts.netloc and parts.netloc != host:
            return location
        path = parts._replace(scheme="", netloc="").geturl()
        has_it = parts.path == self._root or parts.path.startswith(f"{self._root}/")
        return path if not path.startswith("/") or has_it else self._root + path
