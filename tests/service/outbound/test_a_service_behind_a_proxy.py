"""A whole service behind a real proxy, with an authority of the test's own: everything that leaves it goes through the
proxy, when the proxy is gone, nothing leaves, and no key or password is kept in clear."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from tests.faults.service import Service, free_ports, wait_for
from tests.real_proxy import real_proxy
from tests.service.gateway.batches.batch_provider import KEY, BatchProvider
from tests.service.gateway.batches.batch_world import BatchWorld

PASSWORD = "pass-word-canary-0815"
HOST = "provider.test"
"""Only the proxy can resolve it."""
RECORDS = "".join(json.dumps({"question": f"{n} + 1?", "answer": f"#### {n + 1}"}) + "\n" for n in range(3))


class Outside(BatchProvider):
    """A provider with batches, its list of models, a file of records and a webhook, and what was asked of them."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.url, self.asked = f"https://{HOST}:{port}", list[str]()

    def server(self, authority: Path) -> uvicorn.Server:
        async def models(_: Request) -> Response:
            return JSONResponse({"object": "list", "data": [{"id": "m", "object": "model"}]})

        async def records(_: Request) -> Response:
            return PlainTextResponse(RECORDS)

        async def hook(request: Request) -> Response:
            await request.body()
            return Response(status_code=204)

        app = self.app
        app.add_route("/v1/models", models)
        app.add_route("/records.jsonl", records)
        app.add_route("/hook", hook, methods=["POST"])

        async def noted(scope: Any, receive: Any, send: Any) -> None:
            self.asked.append(f"{scope['method']} {scope['path']}")
            await app(scope, receive, send)

        return uvicorn.Server(
            uvicorn.Config(
                noted,
                port=int(self.url.rpartition(":")[2]),
                log_config=None,
                lifespan="off",
                timeout_graceful_shutdown=1,
                ssl_certfile=authority / "server.pem",
                ssl_keyfile=authority / "server.key",
            )
        )


@contextlib.contextmanager
def outside(authority: Path) -> Iterator[Outside]:
    (port,) = free_ports(1)
    there = Outside(port)
    server = there.server(authority)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield there
    finally:
        server.should_exit = server.force_exit = True
        thread.join(30)


class Office(BatchWorld):
    """A service that knows the provider `house` only by what a user enters."""

    def __init__(self, data: Path, provider: BatchProvider, authority: Path) -> None:
        self.provider, bundle = provider, authority / "ca.pem"
        self.service = Service(data, engine="process", ca_bundle=bundle, batch_poll_s=0.3, reconcile_s=0.5)
        self.client = self.service.client

    def post(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = self.client.post(path, json=body or {})
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def enter(self) -> None:
        base = {"name": "house", "kind": "openai_compatible", "base_url": f"{self.provider.url}/v1", "key": KEY}
        self.post("/api/providers", base)
        self.hook = self.post("/api/alerts/webhooks", {"url": f"{self.provider.url}/hook"})["id"]

    def use_everything(self) -> list[str]:
        """What the service says about each thing that asks somebody outside, except for runs."""
        tested = json.dumps(self.post("/api/providers/house/test"))
        synced = json.dumps(self.post("/api/models/sync"))
        self.post("/api/datasets", {"name": "sums", "source": f"{self.provider.url}/records.jsonl", "format": "gsm8k"})
        built = wait_for(
            lambda: job if (job := self.client.get("/api/datasets/sums").json())["state"] != "running" else None, 60, "built"
        )
        delivered = self.client.post(f"/api/alerts/webhooks/{self.hook}/test").text
        return [tested, synced, json.dumps(built), delivered]

    def ask(self, *, batch: bool) -> str:
        body = {"model_id": "house/m", "benchmarks": ["sums"], "sample_size": 2, "batch": batch}
        return str(self.post("/api/container-runs", body)["run_id"])

    def what_is_kept(self, run_id: str) -> str:
        """The answers of a run, wherever they can be read."""
        paths = ("items/0", "calls", "export?format=json", "export?format=jsonl")
        return "".join(self.client.get(f"/api/container-runs/{run_id}/{path}").text for path in paths)

    def troubles(self, run_id: str) -> str:
        """What is known of the run, its batches and its calls."""
        parts = self.rows("select error from batch_parts where run_id=?", run_id)
        items = self.client.get(f"/api/container-runs/{run_id}/items").json()
        return f"{parts} {self.run(run_id)} {items} {self.calls(run_id)}"


@pytest.fixture
def there(authority: Path) -> Iterator[Outside]:
    with outside(authority) as there:
        yield there


def test_everything_goes_through_the_proxy_and_nothing_leaves_without_it(
    there: Outside, tmp_path: Path, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.ExitStack() as until_the_end:
        there.answer = lambda question: f"I was asked with {KEY}"
        with real_proxy(tmp_path, "--basic-auth", f"clerk:{PASSWORD}") as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", f"//clerk:{PASSWORD}@"))
            office = Office(tmp_path / "data", there, authority)
            until_the_end.callback(office.client.close)
            office.start()
            until_the_end.callback(office.service.kill)
            office.enter()
            for said in office.use_everything():
                assert "proxy" not in said, said
            for batch in (True, False):
                run = office.ended(office.ask(batch=batch))
                assert run["status"] == "completed", run
                answers = office.what_is_kept(run["id"])
                assert "I was asked with" in answers
                assert KEY not in answers
            assert {
                *("POST /v1/chat/completions", "POST /v1/files", "POST /v1/batches", "GET /v1/models"),
                *("GET /records.jsonl", "POST /hook"),
            } <= set(there.asked)
            assert set(proxy.asked) == {f"CONNECT {HOST}:{there.url.rpartition(':')[2]}"}
        there.asked.clear()
        address = proxy.url.removeprefix("http://")
        for said in office.use_everything():
            assert address in said, said
            assert PASSWORD not in said
        held_up = [office.ask(batch=batch) for batch in (True, False)]
        for run_id in held_up:
            words = f"run {run_id} is held up by the proxy"
            wait_for(lambda run_id=run_id: address in office.troubles(run_id), 60, words)  # type: ignore[misc]
            assert PASSWORD not in office.troubles(run_id)
        assert there.asked == []
        for run_id in held_up:
            office.post(f"/api/container-runs/{run_id}/cancel")
            assert office.ended(run_id)["status"] == "cancelled"
        for file in (path for path in office.service.data.rglob("*") if path.is_file()):
            assert not [secret for secret in (KEY, PASSWORD) if secret.encode() in file.read_bytes()], file
