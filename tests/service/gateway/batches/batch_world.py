"""A real service in a process of its own, with runners as local processes, and a provider with batches."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from tests.faults.service import Service, wait_for
from tests.service.gateway.batches.batch_provider import KEY, BatchProvider

DONE = ("completed", "failed", "cancelled")
PROTOCOLS = {"chat": "openai_chat", "responses": "openai_responses", "claude": "anthropic"}
FULL_USD = 100 * 1.0 / 1e6 + 20 * 2.0 / 1e6
"""What one ordinary call costs: 100 tokens in, 20 out."""


def sums(name: str, problems: int) -> dict[str, Any]:
    """A benchmark of additions. The provider answers 42, so that those whose sum is 42 pass."""
    records = [{"id": f"p{number}", "input": f"{number} + {42 - number}", "target": "42"} for number in range(problems)]
    return {"name": name, "records": records, "fields": {"id": "id"}, "judge": "exact"}


class BatchWorld:
    def __init__(self, data: Path, provider: BatchProvider, **settings: Any) -> None:
        self.provider = provider
        own = {
            "provider_house_base_url": f"{provider.url}/v1",
            "provider_house_api_key": KEY,
            "provider_manor_base_url": provider.url,
            "provider_manor_api_key": KEY,
            "provider_manor_protocols": "anthropic",
        }
        fast = {"batch_poll_s": 0.3, "reconcile_s": 0.5}
        chosen: dict[str, Any] = {**own, **fast, **settings}
        self.service = Service(data, engine="process", **chosen)
        self.client = self.service.client

    def start(self) -> None:
        self.service.start()

    @property
    def is_dead(self) -> bool:
        """Whether the orchestrator's process has ended."""
        try:
            return Path(f"/proc/{self.service.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:  # somebody has asked for its exit code
            return True

    def prepare(self, problems: int = 6) -> None:
        for slug, protocol in PROTOCOLS.items():
            provider = "manor" if slug == "claude" else "house"
            body = {"slug": slug, "provider": provider, "name": slug, "protocol": protocol}
            prices = {"input_price": 1, "output_price": 2, "params": {"max_tokens": 100}}
            assert self.client.post("/api/models", json={**body, **prices}).status_code == 201
        self.add(sums("sums", problems))

    def add(self, definition: dict[str, Any]) -> None:
        answer = self.client.post("/api/benchmarks", json={"definition": definition})
        assert answer.status_code == 202, answer.text
        path = f"/api/datasets/{definition['name']}"
        job = wait_for(lambda: job if (job := self.client.get(path).json())["state"] != "running" else None, 30, path)
        assert job["state"] == "done", job

    def submit(self, model: str, **fields: Any) -> str:
        body = {"model_id": model, "benchmarks": ["sums"], "sample_size": 6, "batch": True, **fields}
        answer = self.client.post("/api/container-runs", json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["run_id"])

    def run(self, run_id: str) -> dict[str, Any]:
        run: dict[str, Any] = self.client.get(f"/api/container-runs/{run_id}").json()
        return run

    def ended(self, run_id: str) -> dict[str, Any]:
        found: dict[str, Any] = wait_for(
            lambda: run if (run := self.run(run_id))["status"] in DONE else None,
            90,
            lambda: f"run ends: {self.run(run_id)} {self.service.log_tail()}",
        )
        return found

    def waits(self, run_id: str, words: str) -> dict[str, Any]:
        found: dict[str, Any] = wait_for(
            lambda: run if words in ((run := self.run(run_id))["waiting_for"] or "") else None,
            90,
            lambda: f"{words}: {self.run(run_id)} {self.service.log_tail()}",
        )
        assert found["status"] == "pending"
        return found

    def calls(self, run_id: str) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = self.client.get(f"/api/container-runs/{run_id}/calls?limit=500").json()["items"]
        return calls

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Read the database from outside."""
        with sqlite3.connect(f"file:{self.service.data / 'benchyard.db'}?mode=ro", uri=True) as connection:
            return connection.execute(query, values).fetchall()

    def parts_ended(self, run_id: str) -> bool:
        return not self.rows("select id from batch_parts where run_id=? and state <> 'ended'", run_id)
