"""For proxy.py: names that only the proxy can resolve, and a list of what was asked of it."""

from __future__ import annotations

import os
from pathlib import Path

from proxy.http.parser import HttpParser
from proxy.http.proxy import HttpProxyBasePlugin


class KnowsNames(HttpProxyBasePlugin):  # type: ignore[misc]
    def resolve_dns(self, host: str, port: int) -> tuple[str | None, None]:
        return ("127.0.0.1" if host.endswith(".test") else None), None

    def before_upstream_connection(self, request: HttpParser) -> HttpParser | None:
        with Path(os.environ["PROXY_LOG"]).open("a") as log:
            log.write(f"{request.method.decode()} {request.host.decode()}:{request.port}\n")
        return request
