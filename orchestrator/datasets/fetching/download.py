"""Downloads a file: streamed, with progress, resumed after an interruption, checked against size and sha256.

An unfinished download is `<target>.part`; the target appears only after all checks have passed. The token is sent to the hub
only: it is dropped when a redirect leads to another host.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from orchestrator.datasets.errors import DownloadFailed
from orchestrator.datasets.fetching.hub import hub_token
from orchestrator.datasets.fetching.sources import RemoteFile, hub_endpoint
from orchestrator.datasets.formats.source import Progress
from orchestrator.outbound.addresses import AddressRefused, AddressRule
from orchestrator.outbound.tls import tls_context
from orchestrator.outbound.transports import CheckingTransport
from orchestrator.system.files import DiskRoom

TRIES = 5
_CHECK_BYTES = 64 << 20
_TIMEOUT = httpx.Timeout(60, connect=20)
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})


AddressRules = Callable[[str], AddressRule]
"""For a host: the rule that says why one of its addresses may not be called."""


class _Stopped(Exception):
    """The transfer was interrupted; it can be retried."""


def hub_headers(url: str, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The Authorization header for the Hugging Face hub, if there is a token and the URL is the hub's."""
    ours, hub = urlsplit(url), urlsplit(hub_endpoint(environment))
    if (ours.scheme, ours.netloc) == (hub.scheme, hub.netloc) and (token := hub_token(environment)):
        return {"Authorization": f"Bearer {token}"}
    return {}


def fetch(
    file: RemoteFile,
    target: Path,
    *,
    progress: Progress | None = None,
    room: DiskRoom | None = None,
    judge: AddressRules | None = None,
    client: httpx.Client | None = None,
    sleep: Callable[[float], Any] = time.sleep,
) -> Path:
    """Downloads `file` to `target`; raises `DownloadFailed` with the reason. Partial data is kept for the next try."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    transport = CheckingTransport(judge) if judge else None
    own = client or httpx.Client(timeout=_TIMEOUT, follow_redirects=True, transport=transport, verify=tls_context())
    why = ""
    try:
        for turn in range(TRIES):
            if turn:
                sleep(min(2.0**turn, 30))
            try:
                said = _transfer(own, file, part, progress, room)
            except AddressRefused as error:
                raise DownloadFailed(f"{file.url} may not be fetched: {error}.") from None
            except (_Stopped, httpx.TransportError) as error:
                why = str(error) or type(error).__name__
                continue
            except (httpx.InvalidURL, httpx.RequestError) as error:
                raise DownloadFailed(f"{file.url} could not be fetched ({error}). Check the address.") from None
            _Mark(part).forget()
            _check(file, part, said)
            part.replace(target)
            return target
    finally:
        if client is None:
            own.close()
    raise DownloadFailed(f"{file.url} could not be fetched in {TRIES} tries ({why}). What has arrived is kept; try again.")


def _transfer(
    client: httpx.Client, file: RemoteFile, part: Path, progress: Progress | None, room: DiskRoom | None
) -> RemoteFile:
    """Makes one try and returns the server's description of the file."""
    have = part.stat().st_size if part.exists() else 0
    mark = _Mark(part)
    headers = hub_headers(file.url) | (mark.resuming(have) if have else {}) | {"Accept-Encoding": "identity"}
    with client.stream("GET", file.url, headers=headers) as response:
        said = _said(file, response)
        if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            if said.size is not None and have == said.size:
                return said
            part.unlink()
            raise _Stopped("what had arrived did not fit; starting over")
        if response.status_code in _PASSING:
            raise _Stopped(f"the server answered {response.status_code}")
        if not response.is_success:
            raise DownloadFailed(_refusal(file.url, response))
        if response.status_code != httpx.codes.PARTIAL_CONTENT:
            have = 0
        elif not mark.continues(response, have):
            part.unlink(missing_ok=True)
            raise _Stopped("the server went on with something else; starting over")
        if not have:
            mark.keep(response)
        if room:
            room.require(max((said.size or 0) - have, 0), file.url)
        unchecked = 0
        with part.open("ab" if have else "wb") as out:
            for chunk in response.iter_raw():
                out.write(chunk)
                have += len(chunk)
                unchecked += len(chunk)
                if said.size is not None and have > said.size:
                    break
                if room and unchecked >= _CHECK_BYTES:
                    unchecked = 0
                    room.require(0, file.url)
                if progress:
                    progress(have, said.size or 0)
    if said.size is not None and have < said.size:
        raise _Stopped(f"{have} of {said.size} bytes arrived")
    return said


class _Mark:
    """The server's identifier of the partially downloaded version, stored beside it: only that version is resumed."""

    def __init__(self, part: Path) -> None:
        self._path = part.with_name(part.name + ".version")

    def resuming(self, have: int) -> dict[str, str]:
        known = self._path.read_text() if self._path.exists() else ""
        return {"Range": f"bytes={have}-"} | ({"If-Range": known} if known else {})

    def keep(self, response: httpx.Response) -> None:
        self._path.write_text(_version(response))

    def continues(self, response: httpx.Response, have: int) -> bool:
        known = self._path.read_text() if self._path.exists() else ""
        same = not known or _version(response) in ("", known)
        return same and response.headers.get("content-range", "").startswith(f"bytes {have}-")

    def forget(self) -> None:
        self._path.unlink(missing_ok=True)


def _version(response: httpx.Response) -> str:
    """A strong ETag, or the Last-Modified time."""
    tag: str = response.headers.get("etag", "")
    found: str = tag if tag and not tag.startswith("W/") else response.headers.get("last-modified", "")
    return found if found.isascii() and found.isprintable() else ""


def _said(file: RemoteFile, response: httpx.Response) -> RemoteFile:
    """Size and sha256 as known beforehand, otherwise as reported by the hub or the server."""
    size, sha256 = file.size, file.sha256
    for each in (*response.history, response):
        if size is None and each.headers.get("x-linked-size", "").isdigit():
            size = int(each.headers["x-linked-size"])
        mark = each.headers.get("x-linked-etag", "").strip('"').lower()
        if sha256 is None and len(mark) == 64 and all(letter in "0123456789abcdef" for letter in mark):
            sha256 = mark
    if size is None:
        total = response.headers.get("content-range", "").rpartition("/")[2]
        if not total and response.status_code == httpx.codes.OK:
            total = response.headers.get("content-length", "")
        size = int(total) if total.isdigit() else None
    return RemoteFile(file.url, size, sha256)


def _check(file: RemoteFile, part: Path, said: RemoteFile) -> None:
    size = part.stat().st_size
    if said.size is not None and size != said.size:
        part.unlink()
        raise DownloadFailed(f"{file.url} has {size} bytes and should have {said.size}; it was thrown away.")
    if said.sha256 is None:
        return
    with part.open("rb") as data:
        found = hashlib.file_digest(data, "sha256").hexdigest()
    if found != said.sha256.lower():
        part.unlink()
        raise DownloadFailed(
            f"{file.url} is not the file expected: its sha256 is {found}, expected {said.sha256}. It was thrown away."
        )


def _refusal(url: str, response: httpx.Response) -> str:
    status = response.status_code
    if response.headers.get("x-error-code") == "GatedRepo":
        page = url.partition("/resolve/")[0]
        return f"{url} is gated: accept the terms at {page}, set HF_TOKEN to a token of that account, and try again."
    hint = {
        401: "It needs a token: set HF_TOKEN.",
        403: "The token has no access: accept the dataset's terms, or set another HF_TOKEN.",
        404: "There is no such file: check the address and the release.",
    }.get(status, "Try again later, or fetch it by hand and use --from FILE.")
    return f"{url} was answered with {status}. {hint}"
