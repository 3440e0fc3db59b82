"""The HTTP client of the service. Commands give the REST path; every failure becomes one of `errors`, in the service's own
words.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx
from httpx_sse import EventSource, ServerSentEvent

from orchestrator.cli.api.connection import Connection
from orchestrator.cli.errors import BadUsage, CliError, NotReachable, Refused
from orchestrator.cli.view.text import clean
from orchestrator.outbound.tls import tls_context, why_refused_within
from orchestrator.startup import BadConfiguration

TIMEOUT = httpx.Timeout(35, connect=5)
READY_S = 10.0
"""The service asks its engine before it responds."""
STREAM_TIMEOUT = httpx.Timeout(45, connect=5)
"""The service sends a comment every 15 s."""
UPLOAD_TIMEOUT = httpx.Timeout(600, connect=5)
PAGE = 500
EVERYTHING = 10**7

Json = dict[str, Any]


class Client:
    def __init__(self, connection: Connection, transport: httpx.BaseTransport | None = None) -> None:
        self.connection = connection
        headers = {"authorization": f"Bearer {connection.token}"} if connection.token else {}
        if connection.workspace:
            headers["x-benchyard-workspace"] = connection.workspace
        # Proxies configured for the internet are not used for a service on this machine.
        self._http = httpx.Client(
            base_url=connection.url,
            headers=headers,
            timeout=TIMEOUT,
            trust_env=not connection.is_local,
            verify=_tls(),
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._http.close()

    # -- requests

    def get(self, path: str, **query: object) -> Json:
        return self._call("GET", path, query=query)

    def post(self, path: str, body: Json | None = None, *, timeout: httpx.Timeout = TIMEOUT, **query: object) -> Json:
        return self._call("POST", path, body=body, query=query, timeout=timeout)

    def put(self, path: str, body: Json) -> Json:
        return self._call("PUT", path, body=body)

    def patch(self, path: str, body: Json) -> Json:
        return self._call("PATCH", path, body=body)

    def delete(self, path: str, **query: object) -> Json:
        return self._call("DELETE", path, query=query)

    def items(self, path: str) -> list[Json]:
        """A list that the service returns in one piece."""
        return list(self.get(path)["items"])

    def pages(
        self, path: str, *, limit: int = EVERYTHING, after: str | None = None, page: int = PAGE, **query: object
    ) -> list[Json]:
        """A list that the service returns in pages, up to `limit` items."""
        items: list[Json] = []
        while len(items) < limit:
            answer = self.get(path, **query, limit=min(page, limit - len(items)), after=after or None)
            items += answer["items"]
            after = answer.get("next")
            if not after:
                break
        return items

    def upload(self, method: str, path: str, file: Path, **query: object) -> Json:
        """Sends a file as the request body."""
        try:
            with file.open("rb") as body:
                params = _present(query)
                response = self._http.request(method, path, content=body, params=params, timeout=UPLOAD_TIMEOUT)
        except httpx.HTTPError as error:
            raise NotReachable(self.connection.url, _why(error)) from error
        except OSError as error:
            raise CliError(f"{file} cannot be read: {error.strerror}.") from error
        return self._answer(response)

    @contextmanager
    def download(self, path: str, **query: object) -> Iterator[Iterator[bytes]]:
        """Yields the pieces of a file. The token is not forwarded when the response redirects to an object store."""
        try:
            with self._http.stream(
                "GET", path, params=_present(query), follow_redirects=True, timeout=UPLOAD_TIMEOUT
            ) as response:
                if response.status_code != httpx.codes.OK:
                    response.read()
                    if self._is_elsewhere(response.url):
                        raise _no_download(response.url, f"answered {response.status_code}")
                    raise _refusal(response)
                yield response.iter_bytes()
        except (httpx.HTTPError, httpx.StreamError) as error:
            if isinstance(error, httpx.RequestError) and self._is_elsewhere(error.request.url):
                raise _no_download(error.request.url, f"did not send the whole file ({_why(error)})") from error
            raise NotReachable(self.connection.url, _why(error)) from error

    @contextmanager
    def stream(self, path: str, last_event_id: str | None) -> Iterator[Iterator[ServerSentEvent]]:
        """Opens an event stream after the given event."""
        headers = {"last-event-id": last_event_id} if last_event_id else {}
        try:
            with self._http.stream("GET", path, headers=headers, timeout=STREAM_TIMEOUT) as response:
                if response.status_code != httpx.codes.OK:
                    response.read()
                    raise _refusal(response)
                yield EventSource(response).iter_sse()
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise NotReachable(self.connection.url, _why(error)) from error

    # -- readiness and runs, used by many commands

    def readiness(self) -> Json:
        """The answer of /readyz on each component; empty if there is none."""
        try:
            answer = self._http.get("/readyz", timeout=READY_S).json()
        except (httpx.HTTPError, ValueError):
            return {}
        return answer if isinstance(answer, dict) else {}

    def is_ready(self) -> tuple[bool, str]:
        """Whether the service is ready, and otherwise why not."""
        try:
            response = self._http.get("/readyz", timeout=READY_S)
            problems = [clean(problem) for problem in response.json().get("problems", [])]
        except (httpx.HTTPError, ValueError, AttributeError) as error:
            return False, _why(error)
        return response.status_code == httpx.codes.OK, "; ".join(problems)

    def run(self, run_id: str) -> Json:
        return self.get(run_path(run_id))

    def find_run(self, beginning: str) -> Json:
        """Finds a run by its id or by any unique prefix of it."""
        beginning = beginning.strip().lower()
        if len(beginning) >= 36:
            return self.run(beginning)
        if not beginning or set(beginning) - set("0123456789abcdef-"):
            raise CliError(f"{clean(beginning)!r} is not the beginning of a run's id; `benchyard runs` lists them.")
        # Ids sort by time and the list starts below `after`, so the runs with this prefix come first.
        newest = self.pages("/api/container-runs", limit=5, after=f"{beginning}z")
        matches = [str(run["id"]) for run in newest if str(run["id"]).startswith(beginning)]
        if not matches:
            raise CliError(f"There is no run {beginning}; `benchyard runs` lists the runs.")
        if len(matches) > 1:
            some = ", ".join(map(clean, matches[:3]))
            raise CliError(f"Several runs begin with {beginning}: {some}; give more of the id.")
        return self.run(matches[0])

    def find_run_id(self, beginning: str) -> str:
        return str(self.find_run(beginning)["id"])

    # -- internals

    def _is_elsewhere(self, url: httpx.URL) -> bool:
        return url.netloc != self._http.base_url.netloc

    def _call(
        self,
        method: str,
        path: str,
        *,
        body: Json | None = None,
        query: Json | None = None,
        timeout: httpx.Timeout = TIMEOUT,
    ) -> Json:
        try:
            response = self._http.request(method, path, json=body, params=_present(query or {}), timeout=timeout)
        except httpx.HTTPError as error:
            raise NotReachable(self.connection.url, _why(error)) from error
        return self._answer(response)

    def _answer(self, response: httpx.Response) -> Json:
        if response.is_error or response.is_redirect:
            raise _refusal(response)
        if not response.content:
            return {}
        try:
            body = response.json()
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise CliError(f"The server at {self.connection.url} is not Benchyard.")
        return body


def run_path(run_id: str) -> str:
    return f"/api/container-runs/{quote(run_id, safe='')}"


def given(**fields: object) -> Json:
    """The fields of a request body that are not None."""
    return _present(fields)


def _present(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _refusal(response: httpx.Response) -> CliError:
    """The error with the problem's detail. A response that is not a problem document did not come from Benchyard."""
    try:
        body = response.json()
        detail, code = clean(body["detail"]).strip(), str(body.get("code", ""))
    except (ValueError, TypeError, KeyError, AttributeError):
        return CliError(
            f"The server at {response.request.url.netloc.decode()} answered {response.status_code}: is it Benchyard?"
        )
    is_field = detail.split(" ", 1)[0].endswith(":")
    sentence = detail if is_field else detail[:1].upper() + detail[1:]
    if not sentence.endswith((".", "?", "!")):
        sentence += "."
    if response.status_code == httpx.codes.UNAUTHORIZED:
        sentence += " The command takes it from BENCHYARD_TOKEN, or from the directory that BENCHYARD_DATA names."
    return Refused(sentence, response.status_code, code)


def _no_download(url: httpx.URL, problem: str) -> CliError:
    """Names the host only: anybody with the signed URL can download the file."""
    return CliError(f"The file is in the object store at {clean(url.netloc.decode())}, which {problem}.")


def _tls() -> ssl.SSLContext:
    try:
        return tls_context()
    except BadConfiguration as error:
        raise BadUsage(str(error)) from error


def _why(error: Exception) -> str:
    if (why := why_refused_within(error)) is not None:
        return why
    if isinstance(error, httpx.ConnectError):
        return re.sub(r"^\[errno -?\d+\] ", "", clean(error).lower())
    return type(error).__name__ if not isinstance(error, httpx.TimeoutException) else "no answer in time"
