"""One service on a cluster, with a provider that counts: where faults happen, and what must hold after each of them."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from orchestrator.gateway.calls import request_hash
from tests.faults.counting_provider import CountingProvider
from tests.faults.invariants import log_replays, nothing_lost
from tests.faults.killing import MODEL, add_model, tables
from tests.faults.service import wait_for
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.service import EVERY_S, ClusterService

ITEMS = 8
CONCURRENCY = 2


class Scene:
    """The provider answers as many questions as the scene allows, so that a run stands still at the moment of a fault."""

    def __init__(self, service: ClusterService, provider: CountingProvider) -> None:
        self.service, self.cluster, self.provider = service, service.cluster, provider
        self.namespace = service.namespace
        self.asked = 0
        """Answers that all runs so far wanted."""
        self.orchestrator_kills = 0

    def submit(self, items: int = ITEMS) -> str:
        self.asked += items
        return self.service.submit(MODEL["slug"], sample_size=items, concurrency=CONCURRENCY)  # type: ignore[arg-type]

    def run_until(self, done: int) -> str:
        """A run that has this many items and no answer for the next ones until `finish`."""
        self.provider.allow(self.provider.answered() + done)
        run_id = self.submit()
        self.service.wait_items(run_id, done)
        return run_id

    def wait_attempt(self, run_id: str, number: int, within_s: float = 300) -> dict[str, Any]:
        """Wait until this attempt, or a later one, was claimed by its runner."""

        def reached() -> dict[str, Any] | None:
            run = self.service.run(run_id)
            assert run["status"] not in ("completed", "failed", "cancelled"), run
            return run if run["attempt"] >= number and run["status"] == "running" else None

        found: dict[str, Any] = wait_for(reached, within_s, lambda: f"attempt {number} runs: {self.service.run(run_id)}")
        return found

    def finish(self, *run_ids: str) -> list[dict[str, Any]]:
        """Let runs end, and check what must hold: each item once, each answer bought once, nothing left in the cluster."""
        self.provider.allow()
        runs = [self.service.wait_status(run_id, "completed", within_s=300) for run_id in run_ids]
        for run in runs:
            nothing_lost(self.service, run)
            log_replays(self.service, run)
        self.service.nothing_left()
        self.bought_once()
        return runs

    def bought_once(self) -> None:
        """Calls at the provider = distinct call keys, but for what was under way when the orchestrator was killed."""
        book = tables(self.service, None)
        asked = Counter(
            request_hash("openai", "/v1/chat/completions", question, {}) for question in self.provider.questions()
        )
        keys = Counter(call["request_hash"] for call in book["gateway_calls"])
        hash_of = {call["call_key"]: call["request_hash"] for call in book["gateway_calls"]}
        lost = Counter(hash_of[send["call_key"]] for send in book["gateway_lost_sends"])
        assert keys.total() == self.asked, f"{keys.total()} calls in the ledger for {self.asked} items"
        assert {call["state"] for call in book["gateway_calls"]} == {"settled"}
        for question, count in asked.items():
            assert keys[question] <= count <= keys[question] + lost[question], "an answer was bought twice"
        assert lost.total() <= CONCURRENCY * self.orchestrator_kills

    def wait_ready(self, *nodes: str) -> None:
        wait_for(lambda: self.cluster.ready_nodes() >= set(nodes), 120, f"{nodes} are ready", every_s=EVERY_S)


@contextmanager
def scene(cluster: Cluster, **settings: object) -> Iterator[Scene]:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchyard-cluster-")))
        provider = stack.enter_context(CountingProvider(directory / "provider.log", latency_s=0.05))
        namespace = stack.enter_context(cluster.namespace())
        before = {name: os.environ.get(name) for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY")}
        os.environ |= {"OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": "counted"}
        try:
            service = ClusterService(directory / "data", cluster, namespace, **settings)
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        stack.callback(service.close)
        service.start()
        add_model(service)
        yield Scene(service, provider)
