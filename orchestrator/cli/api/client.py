"""The service as commands see it: `orchestrator.client` with answers as plain JSON, and every failure as one of `errors`."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import httpx

from orchestrator.cli.api.connection import Connection
from orchestrator.cli.errors import BadUsage, CliError, NotReachable, Refused
from orchestrator.cli.view.text import clean
from orchestrator.client import ApiError, Benchyard, BenchyardError, ConnectionFailed, StreamEvent
from orchestrator.client.requests import ANSWER_S, UPLOAD_S, Reply
from orchestrator.client.steps import NEVER, PAGE, PATIENCE_S
from orchestrator.client.transports import Address
from orchestrator.startup import BadConfiguration

__all__ = ["UPLOAD_S", "Client", "Json", "given", "run_path"]

READY_S = 10.0
"""The service asks its engine before it responds."""

Json = dict[str, Any]


class Client:
    def __init__(
        self,
        connection: Connection,
        transport: httpx.BaseTransport | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.connection = connection
        address = Address(connection.url, connection.token, connection.workspace)
        try:  # a command says at once that the service is away; only what is followed is waited for
            self._api = Benchyard(address=address, retry=NEVER, transport=transport, sleep=sleep, monotonic=monotonic)
        except BadConfiguration as error:
            raise BadUsage(str(error)) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._api.close()

    # -- requests

    def get(self, path: str, **query: object) -> Json:
        return self._call("GET", path, query=query)

    def post(self, path: str, body: Json | None = None, *, timeout_s: float = ANSWER_S, **query: object) -> Json:
        return self._call("POST", path, body=body, query=query, timeout_s=timeout_s)

    def put(self, path: str, body: Json) -> Json:
        return self._call("PUT", path, body=body)

    def patch(self, path: str, body: Json) -> Json:
        return self._call("PATCH", path, body=body)

    def delete(self, path: str, **query: object) -> Json:
        return self._call("DELETE", path, query=query)

    def items(self, path: str) -> list[Json]:
        """A list that the service returns in one piece."""
        return list(self.get(path)["items"])

    def pages(self, path: str, *, limit: int | None = None, page: int = PAGE, **query: object) -> list[Json]:
        """A list that the service returns in pages, up to `limit` items."""
        with _translated():
            return list(self._api.plain.items(path, limit=limit, page=page, query=query))

    def upload(self, method: str, path: str, file: Path, **query: object) -> Json:
        """Sends a file as the request body."""
        try:
            with _translated():
                return self._api.plain.request(method, path, file=file, query=query)
        except OSError as error:
            raise CliError(f"{file} cannot be read: {error.strerror}.") from error

    @contextmanager
    def download(self, path: str, **query: object) -> Iterator[Iterator[bytes]]:
        """Yields the pieces of a file."""
        with _translated():
            pieces = self._api.plain.download(path, query=query)
            yield itertools.chain([next(pieces, b"")], pieces)  # a refusal is raised before a file is opened

    def follow(self, path: str, *, patience_s: float = PATIENCE_S) -> Iterator[StreamEvent]:
        """Yields every event of the run or job at `path` exactly once, until it ends. Raises `NotReachable` if the service
        stays unreachable.
        """
        with _translated():
            yield from self._api.plain.events(path, patience_s=patience_s)

    # -- readiness and runs, used by many commands

    def readiness(self) -> Json:
        """The answer of /readyz on each component; empty if there is none."""
        try:
            answer = json.loads(self._ready().body)
        except (CliError, ValueError):
            return {}
        return answer if isinstance(answer, dict) else {}

    def is_ready(self) -> tuple[bool, str]:
        """Whether the service is ready, and otherwise why not."""
        try:
            reply = self._api.plain.reply("/readyz", timeout_s=READY_S)
            problems = [clean(problem) for problem in json.loads(reply.body).get("problems", [])]
        except ConnectionFailed as error:
            return False, clean(error.why)
        except (ValueError, AttributeError) as error:
            return False, type(error).__name__
        return reply.status == httpx.codes.OK, "; ".join(problems)

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

    def _ready(self) -> Reply:
        with _translated():
            return self._api.plain.reply("/readyz", timeout_s=READY_S)

    def _call(
        self,
        method: str,
        path: str,
        *,
        body: Json | None = None,
        query: Json | None = None,
        timeout_s: float = ANSWER_S,
    ) -> Json:
        with _translated():
            return self._api.plain.request(method, path, json=body, query=query, timeout_s=timeout_s)


def run_path(run_id: str) -> str:
    return f"/api/container-runs/{quote(run_id, safe='')}"


def given(**fields: object) -> Json:
    """The fields of a request body that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ConnectionFailed as error:
        raise NotReachable(error.url, clean(error.why)) from error
    except ApiError as error:
        sentence = clean(error.sentence)
        if error.status == httpx.codes.UNAUTHORIZED:
            sentence += " The command takes it from BENCHYARD_TOKEN, or from the directory that BENCHYARD_DATA names."
        raise Refused(sentence, error.status, error.code) from error
    except BenchyardError as error:
        raise CliError(clean(error)) from error
