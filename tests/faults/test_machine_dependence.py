"""A problem whose verdict depends on the machine, in real containers: the matrix finds it and names it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import StartService
from tests.faults.counting_provider import CountingProvider
from tests.faults.invariants import nothing_left
from tests.faults.killing import MODEL, add_model
from tests.faults.service import wait_for

pytestmark = [pytest.mark.engine, pytest.mark.slow]

TYPES = {name: {"vcpu": 0.5, "memory_mib": mib, "disk_gb": 2} for name, mib in (("cramped", 512), ("roomy", 1536))}
PROGRAM = "word = input()\nhoard = bytearray((600 << 20) if word == 'greedy' else 1)\nprint(word)"


def problem(word: str) -> dict[str, Any]:
    tests = [{"input": word, "output": word, "testtype": "stdin"}]
    return {
        "question_title": word,
        "question_content": "Print the word that you read.",
        "platform": "ours",
        "question_id": word,
        "difficulty": "easy",
        "public_test_cases": tests,
    }


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_problem_that_depends_on_the_machine_is_named(
    start_service: StartService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CountingProvider(tmp_path / "provider.log", latency_s=0.01, program=PROGRAM) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        service = start_service(instance_types=json.dumps(TYPES), default_instance_type="roomy")
        add_model(service)
        lines = "".join(json.dumps(problem(word)) + "\n" for word in ("greedy", "modest"))
        service.client.put("/api/datasets/words", content=lines.encode()).raise_for_status()
        wait_for(lambda: "words" in service.client.get("/api/benchmarks").text, 30, "the dataset is there")
        asked = {"models": [MODEL["slug"]], "benchmarks": ["words"], "instance_types": [*TYPES], "runs_per_instance_type": 2}
        batch_id = service.client.post("/api/batches", json={**asked, "sample_size": 2}).json()["batch_id"]
        path = f"/api/batches/{batch_id}"
        wait_for(lambda: service.client.get(path).json()["state"] == "completed", 120, "the batch", every_s=0.5)
        matrix = service.client.get(f"{path}/matrix").json()
        assert (matrix["items"], matrix["compared"], matrix["flips"], matrix["varied"]) == (2, 2, 1, 0)
        assert matrix["fragile_problems"] == ["words/greedy"]
        assert matrix["fragile"][0]["verdicts"] == {"cramped": {"memory_limit": 2}, "roomy": {"passed": 2}}
        nothing_left(service)
