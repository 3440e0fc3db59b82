"""HTTP/1.1 requests as bytes. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class Target:
    """An address to post to, with the headers that are the same for every call. `headers` may be overruled by a call's."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        self._line = f"POST {quote(parts.path, safe='/%:@!$&()*+,;=~-._') or '/'} HTTP/1.1\r\n"
        self._headers = {name.lower(): value for name, value in headers.items()}
        self._headers["host"] = host.encode("idna").decode() if not host.isascii() else host
        if parts.port is not None and parts.port != (443 if parts.scheme == "https" else 80):
            self._headers["host"] += f":{parts.port}"

    def post(self, headers: Mapping[str, str], content: bytes) -> bytes:
        """Raises `ValueError` when a header cannot be sent."""
        everything = {**self._headers, **headers, "content-length": str(len(content))}
        for name, value in everything.items():
            if _NAME.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
                raise ValueError(f"has a header {name!r} that cannot be sent")
        head = self._line + "".join(f"{name}: {value}\r\n" for name, value in everything.items()) + "\r\n"
        return head.encode("latin-1") + content
