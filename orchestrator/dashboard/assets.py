"""Static files: at an address with their digest a browser may keep them for good, without it it asks for them again each
time. Says which packages of others are there; `scripts/browser-packages` fetches them."""

from __future__ import annotations

import gzip
import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers
from starlette.responses import FileResponse, Response
from starlette.types import Scope

STATIC = Path(__file__).parent / "static"
FOREVER = "public, max-age=31536000, immutable"
EVERY_TIME = "no-cache"
PREFIX = "v-"
TEXTS = (".js", ".css", ".svg")
"""Sent compressed; fonts are compressed already."""


@dataclass(frozen=True)
class BrowserPackages:
    """Which packages from npm were put into the static files when this was set up or built."""

    charts: bool
    mathematics: bool
    fonts: bool

    @property
    def complete(self) -> bool:
        return self.charts and self.mathematics and self.fonts


def browser_packages(static: Path = STATIC) -> BrowserPackages:
    vendor = static / "vendor"
    return BrowserPackages(
        charts=(vendor / "uplot" / "uPlot.iife.min.js").is_file(),
        mathematics=(vendor / "katex" / "katex.min.js").is_file(),
        fonts=all((vendor / font / "index.css").is_file() for font in ("inter", "jetbrains-mono")),
    )


@cache
def version(static: Path = STATIC) -> str:
    """The part of an address that changes whenever a static file does."""
    whole = hashlib.sha256()
    for path in sorted(path for path in static.rglob("*") if path.is_file()):
        whole.update(f"{path.relative_to(static).as_posix()}\0".encode())
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return PREFIX + whole.hexdigest()[:16]


@cache
def compressed(path: str, _modified_ns: int) -> bytes:
    return gzip.compress(Path(path).read_bytes(), 6, mtime=0)


class Assets(StaticFiles):
    """Serves `/static/v-<digest>/<file>` and `/static/<file>`. Modules and styles name each other by relative addresses, so
    everything that a page loads has the digest of the page's release."""

    def __init__(self, directory: Path = STATIC) -> None:
        super().__init__(directory=directory)
        self._version = version(directory)

    async def get_response(self, path: str, scope: Scope) -> Response:
        first, _, rest = path.partition("/")
        asked = first if first.startswith(PREFIX) else None
        response = await super().get_response(rest if asked else path, scope)
        # A page of an older release asks for the older digest: it gets today's file, and keeps it for no longer.
        response.headers["cache-control"] = FOREVER if asked == self._version else EVERY_TIME
        return response

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        path = os.fspath(full_path)
        if not isinstance(response, FileResponse) or not path.endswith(TEXTS):
            return response
        response.headers["vary"] = "accept-encoding"
        if "gzip" not in Headers(scope=scope).get("accept-encoding", ""):
            return response
        names = ("content-type", "etag", "last-modified", "vary")
        headers = {name: value for name, value in response.headers.items() if name in names}
        content = compressed(path, stat_result.st_mtime_ns)
        return Response(content, status_code, headers={**headers, "content-encoding": "gzip"})
