"""The REST API as the commands use it. Every failure leaves here as one of `errors`, with the service's own sentence."""

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
"""The service asks its engine before it answers."""
STREAM_TIMEOUT = httpx.Timeout(45, connect=5)
"""The service sends a sign of life every 15 s."""
UPLOAD_TIMEOUT = httpx.Timeout(600, connect=5)
PAGE = 500

Json = dict[str, Any]


class Client:
    def __init__(self, connection: Connection, transport: httpx.BaseTransport | None = None) -> None:
        self.connection = connection
        headers = {"authorization": f"Bearer {connection.token}"} if connection.token else {}
        if connection.workspace:
            headers["x-benchyard-workspace"] = connection.workspace
        # A proxy that is set for the outside world does not lead to a service on this machine.
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

    # -- health

    def readiness(self) -> Json:
        """What /readyz says of each part; empty when it does not answer."""
        try:
            answer = self._http.get("/readyz", timeout=READY_S).json()
        except (httpx.HTTPError, ValueError):
            return {}
        return answer if isinstance(answer, dict) else {}

    def is_ready(self) -> tuple[bool, str]:
        """Whether /readyz says yes, and otherwise why not."""
        try:
            response = self._http.get("/readyz", timeout=READY_S)
            problems = [clean(each) for each in response.json().get("problems", [])]
        except (httpx.HTTPError, ValueError, AttributeError) as error:
            return False, _why(error)
        return response.status_code == httpx.codes.OK, "; ".join(problems)

    # -- runs

    def create_run(self, body: Json) -> str:
        return str(self._call("POST", "/api/container-runs", json=body)["run_id"])

    def runs(
        self, *, limit: int, status: str | None = None, after: str | None = None, model: int | None = None
    ) -> list[Json]:
        wanted = {"status": status, "model_id": model}
        query = {key: value for key, value in wanted.items() if value is not None}
        return self._pages("/api/container-runs", limit=limit, after=after, query=query)

    def run(self, run_id: str) -> Json:
        return self._call("GET", _run(run_id))

    def find_run(self, beginning: str) -> Json:
        """A run by its id or by any beginning of it that no other run has."""
        beginning = beginning.strip().lower()
        if len(beginning) >= 36:
            return self.run(beginning)
        if not beginning or set(beginning) - set("0123456789abcdef-"):
            raise CliError(f"{clean(beginning)!r} is not the beginning of a run's id; `benchyard runs` lists them.")
        # Ids sort by time and the list starts below `after`: the runs that begin so come first.
        found = [run for run in self.runs(limit=5, after=f"{beginning}z") if str(run["id"]).startswith(beginning)]
        if not found:
            raise CliError(f"There is no run {beginning}; `benchyard runs` lists those there are.")
        if len(found) > 1:
            some = ", ".join(clean(run["id"]) for run in found[:3])
            raise CliError(f"Several runs begin with {beginning}: {some}; give more of the id.")
        return self.run(str(found[0]["id"]))

    def logs(self, run_id: str, *, attempt: int | None = None) -> Json:
        """All log lines, and the end of the container's output."""
        lines: list[Json] = []
        after = "0"
        while True:
            query = {"after": after, "limit": "500"} | ({"attempt": str(attempt)} if attempt else {})
            page = self._call("GET", f"{_run(run_id)}/logs", params=query)
            lines += page["lines"]
            if not page.get("next"):
                return {"lines": lines, "container_log": page["container_log"]}
            after = page["next"]

    def calls(self, run_id: str, *, limit: int) -> list[Json]:
        return self._pages(f"{_run(run_id)}/calls", limit=limit, query={})

    def cancel(self, run_id: str) -> Json:
        return self._call("POST", f"{_run(run_id)}/cancel")

    def delete_runs(self, body: Json) -> Json:
        """Those that match; one request deletes a bounded number, so `more` says whether to ask again."""
        return self._call("POST", "/api/container-runs/delete", json=body)

    def delete_run(self, run_id: str, *, dry_run: bool) -> Json:
        return self._call("DELETE", _run(run_id), params={"dry_run": str(dry_run).lower()})

    def pin_run(self, run_id: str, *, pinned: bool) -> None:
        self._call("POST", f"{_run(run_id)}/{'pin' if pinned else 'unpin'}")

    def retry(self, run_id: str) -> str:
        return str(self._call("POST", f"{_run(run_id)}/retry")["run_id"])

    def items(self, run_id: str) -> list[Json]:
        """All results of a run in the order of its plan, without the large texts."""
        return self._pages(f"{_run(run_id)}/items", limit=10**7, query={})

    def grade(self, file: Path, *, benchmark: str, instance_type: str | None = None) -> Json:
        """Send a file of stored answers; they are judged as a run."""
        query = {"benchmark": benchmark, "filename": file.name}
        return self._send("POST", "/api/grades", file, query | ({"instance_type": instance_type} if instance_type else {}))

    @contextmanager
    def export(self, run_id: str, form: str) -> Iterator[Iterator[bytes]]:
        """The pieces of a run's results in a file format."""
        with self._download(f"{_run(run_id)}/export", {"format": form}) as pieces:
            yield pieces

    @contextmanager
    def archive(self, run_id: str) -> Iterator[Iterator[bytes]]:
        """The pieces of an ended run's archive, wherever it lies."""
        with self._download(f"{_run(run_id)}/archive", {}) as pieces:
            yield pieces

    @contextmanager
    def batch_archive(self, batch_id: str) -> Iterator[Iterator[bytes]]:
        """All ended members of a batch in one."""
        with self._download(f"{_batch(batch_id)}/archive", {}) as pieces:
            yield pieces

    def regrade(self, run_id: str) -> Json:
        return self._call("POST", f"{_run(run_id)}/regrade")

    def moves(self, run_id: str) -> list[Json]:
        return list(self._call("GET", f"{_run(run_id)}/moves")["items"])

    @contextmanager
    def open_stream(self, run_id: str, last_event_id: str | None) -> Iterator[Iterator[ServerSentEvent]]:
        """A run's event stream, from after the given event."""
        headers = {"last-event-id": last_event_id} if last_event_id else {}
        path = f"{self._followed(run_id)}/stream"
        try:
            with self._http.stream("GET", path, headers=headers, timeout=STREAM_TIMEOUT) as response:
                if response.status_code != httpx.codes.OK:
                    response.read()
                    raise _refusal(response)
                yield EventSource(response).iter_sse()
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise NotReachable(self.connection.url, _why(error)) from error

    def _followed(self, run_id: str) -> str:
        """Where what is followed lives."""
        return _run(run_id)

    # -- batches

    def command(self, run_id: str) -> Json:
        return self._call("GET", f"/api/commands/{quote(run_id, safe='')}")

    def compare_commands(self, run_ids: list[str], batch: str | None) -> Json:
        return self._call("GET", "/api/commands/compare", params={"batch": batch} if batch else {"run": run_ids})

    def create_batch(self, body: Json) -> Json:
        return self._call("POST", "/api/batches", json=body)

    def batches(self, *, limit: int) -> list[Json]:
        return self._pages("/api/batches", limit=limit, query={}, page=100)

    def batch(self, batch_id: str) -> Json:
        return self._call("GET", _batch(batch_id))

    def matrix(self, batch_id: str) -> Json:
        return self._call("GET", f"{_batch(batch_id)}/matrix")

    def end_batch(self, batch_id: str, mode: str) -> Json:
        return self._call("POST", f"{_batch(batch_id)}/end", json={"mode": mode})

    def retry_batch(self, batch_id: str, *, cancelled: bool) -> Json:
        return self._call("POST", f"{_batch(batch_id)}/retry", params={"cancelled": str(cancelled).lower()})

    # -- catalogue

    def models(self, *, archived: bool = False) -> list[Json]:
        return self._pages("/api/models", limit=10_000, query={"archived": "true"} if archived else {})

    def add_model(self, body: Json) -> Json:
        return self._call("POST", "/api/models", json=body)

    def model(self, model: str) -> Json:
        return self._call("GET", f"/api/models/{quote(model, safe='/')}")

    def change_model(self, model: str, body: Json) -> Json:
        return self._call("PATCH", f"/api/models/{quote(model, safe='/')}", json=body)

    def sync_models(self) -> Json:
        return self._call("POST", "/api/models/sync")

    def remove_model(self, model: str) -> None:
        self._call("DELETE", f"/api/models/{quote(model, safe='/')}")

    def benchmarks(self) -> list[Json]:
        return list(self._call("GET", "/api/benchmarks")["items"])

    def datasets(self) -> list[Json]:
        return list(self._call("GET", "/api/datasets")["items"])

    def dataset(self, name: str) -> Json:
        """A dataset, or how far it is with being added."""
        return self._call("GET", _dataset(name))

    def add_dataset(self, body: Json) -> Json:
        return self._call("POST", "/api/datasets", json=body)

    def upload_dataset(self, name: str, file: Path, query: Json) -> Json:
        return self._send("PUT", _dataset(name), file, {"filename": file.name, **query})

    def verify_dataset(self, name: str) -> Json:
        return self._call("POST", f"{_dataset(name)}/verify", timeout=UPLOAD_TIMEOUT)

    def remove_dataset(self, name: str) -> None:
        self._call("DELETE", _dataset(name))

    def fleet(self) -> Json:
        return self._call("GET", "/api/fleet")

    def costs(self, *, days: int, by: str) -> Json:
        return self._call("GET", "/api/costs", params={"days": days, "by": by})

    def machine_costs(self, *, days: int, by: str) -> Json:
        return self._call("GET", "/api/machine-costs", params={"days": days, "by": by})

    # -- schedules

    def schedules(self) -> list[Json]:
        return self._pages("/api/schedules", limit=10_000, query={})

    def schedule(self, model: str) -> Json:
        return self._call("GET", _schedule(model))

    def save_schedule(self, body: Json) -> Json:
        return self._call("POST", "/api/schedules", json=body)

    def pause_schedule(self, model: str, *, paused: bool) -> Json:
        return self._call("PATCH", f"{_schedule(model)}/pause", json={"paused": paused})

    def run_schedule(self, model: str) -> str:
        return str(self._call("POST", f"{_schedule(model)}/run")["run_id"])

    def delete_schedule(self, model: str) -> None:
        self._call("DELETE", _schedule(model))

    def preview_schedule(self, query: Json) -> Json:
        return self._call("GET", "/api/schedules/preview", params=query)

    def fires(self, model: str, *, limit: int) -> list[Json]:
        """What became of each instant, newest first."""
        return self._pages(f"{_schedule(model)}/fires", limit=limit, query={})

    # -- tokens

    def tokens(self) -> list[Json]:
        return list(self._call("GET", "/api/tokens")["items"])

    def create_token(self, body: Json) -> Json:
        return self._call("POST", "/api/tokens", json=body)

    def revoke_token(self, token_id: int) -> None:
        self._call("DELETE", f"/api/tokens/{token_id}")

    # -- webhooks

    def webhooks(self) -> list[Json]:
        return list(self._call("GET", "/api/alerts/webhooks")["items"])

    def add_webhook(self, body: Json) -> Json:
        return self._call("POST", "/api/alerts/webhooks", json=body)

    def change_webhook(self, webhook_id: int, body: Json) -> Json:
        return self._call("PATCH", f"/api/alerts/webhooks/{webhook_id}", json=body)

    def try_webhook(self, webhook_id: int) -> Json:
        return self._call("POST", f"/api/alerts/webhooks/{webhook_id}/test")

    def remove_webhook(self, webhook_id: int) -> None:
        self._call("DELETE", f"/api/alerts/webhooks/{webhook_id}")

    # -- accounts

    def account(self) -> Json:
        return self._call("GET", "/api/account")

    def begin_device(self, device: str) -> Json:
        return self._call("POST", "/login/device", json={"device": device})

    def poll_device(self, handle: str, device: str) -> Json:
        return self._call("POST", "/login/device/poll", json={"handle": handle, "device": device})

    def exchange_code(self, code: str, verifier: str) -> str:
        return str(self._call("POST", "/login/command-line", json={"code": code, "verifier": verifier})["token"])

    # -- agents

    def agents(self) -> list[Json]:
        return list(self._call("GET", "/api/agents")["items"])

    def dismiss_agent(self, agent_id: str) -> None:
        self._call("DELETE", f"/api/agents/{agent_id}")

    # -- underneath

    @contextmanager
    def _download(self, path: str, params: Json) -> Iterator[Iterator[bytes]]:
        """The token is not sent on to where an answer may point."""
        try:
            with self._http.stream("GET", path, params=params, follow_redirects=True, timeout=UPLOAD_TIMEOUT) as response:
                if response.status_code != httpx.codes.OK:
                    response.read()
                    if self._is_elsewhere(response.url):
                        raise _no_download(response.url, f"answered {response.status_code}")
                    raise _refusal(response)
                yield response.iter_bytes()
        except (httpx.HTTPError, httpx.StreamError) as error:
            if isinstance(error, httpx.RequestError) and self._is_elsewhere(error.request.url):
                raise _no_download(error.request.url, f"gave nothing whole ({_why(error)})") from error
            raise NotReachable(self.connection.url, _why(error)) from error

    def _is_elsewhere(self, url: httpx.URL) -> bool:
        return url.netloc != self._http.base_url.netloc

    def _pages(self, path: str, *, limit: int, query: Json, after: str | None = None, page: int = PAGE) -> list[Json]:
        found: list[Json] = []
        while len(found) < limit:
            asked = {**query, "limit": str(min(page, limit - len(found)))} | ({"after": after} if after else {})
            answer = self._call("GET", path, params=asked)
            found += answer["items"]
            after = answer.get("next")
            if not after:
                break
        return found

    def _send(self, method: str, path: str, file: Path, params: Json) -> Json:
        """The same with a file as the body."""
        try:
            with file.open("rb") as body:
                response = self._http.request(method, path, content=body, params=params, timeout=UPLOAD_TIMEOUT)
        except httpx.HTTPError as error:
            raise NotReachable(self.connection.url, _why(error)) from error
        except OSError as error:
            raise CliError(f"{file} cannot be read: {error.strerror}.") from error
        return self._answer(response)

    def _call(
        self,
        method: str,
        path: str,
        *,
        json: Json | None = None,
        params: Json | None = None,
        timeout: httpx.Timeout = TIMEOUT,
    ) -> Json:
        try:
            response = self._http.request(method, path, json=json, params=params, timeout=timeout)
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
        except ValueError as error:
            raise CliError(f"What answers at {self.connection.url} is not Benchyard.") from error
        if not isinstance(body, dict):
            raise CliError(f"What answers at {self.connection.url} is not Benchyard.")
        return body


def _run(run_id: str) -> str:
    return f"/api/container-runs/{quote(run_id, safe='')}"


def _schedule(model: str) -> str:
    return f"/api/schedules/{quote(model, safe='/')}"


def _batch(batch_id: str) -> str:
    return f"/api/batches/{quote(batch_id, safe='')}"


def _dataset(name: str) -> str:
    return f"/api/datasets/{quote(name, safe='')}"


def _refusal(response: httpx.Response) -> CliError:
    """The problem's sentence; what is not a problem of ours did not come from us."""
    try:
        body = response.json()
        detail, code = clean(body["detail"]).strip(), str(body.get("code", ""))
    except (ValueError, TypeError, KeyError, AttributeError):
        return CliError(
            f"What answers at {response.request.url.netloc.decode()} answered {response.status_code}: is it Benchyard?"
        )
    is_field = detail.split(" ", 1)[0].endswith(":")
    sentence = detail if is_field else detail[:1].upper() + detail[1:]
    if not sentence.endswith((".", "?", "!")):
        sentence += "."
    if response.status_code == httpx.codes.UNAUTHORIZED:
        sentence += " The command takes it from BENCHYARD_TOKEN, or from the directory that BENCHYARD_DATA names."
    return Refused(sentence, response.status_code, code)


def _no_download(url: httpx.URL, what: str) -> CliError:
    """Without the address itself: whoever has it can fetch what is there."""
    return CliError(f"The service says that it is in the object store at {clean(url.netloc.decode())}, which {what}.")


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
