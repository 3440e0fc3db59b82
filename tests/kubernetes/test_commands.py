"""Commands and harnesses in users' images on a cluster: an init container of the pod brings the runner along."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.invariants import log_replays
from tests.kubernetes.conftest import StartOnCluster
from tests.kubernetes.service import ClusterService

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow]


def test_a_command_in_a_users_image(start_on_cluster: StartOnCluster) -> None:
    service = start_on_cluster(command_images="benchyard-*:*", command_pull="false")
    task = {"image": service.cluster.image, "command": "echo $((6 * 7))", "repeats": 2}
    body = {"kind": "command", "command": task, "instance_type": "standard-1"}
    answer = service.client.post("/api/container-runs", json=body)
    assert answer.status_code == 202, answer.text
    run_id = answer.json()["run_id"]
    service.wait_status(run_id, "completed")
    repeats = service.client.get(f"/api/commands/{run_id}").json()["repeats"]
    assert [repeat["outcome"] for repeat in repeats] == ["passed", "passed"]
    assert service.client.get(f"/api/container-runs/{run_id}/items/0").json()["repeat"]["output"] == "42\n"
    service.nothing_left()


ASKING = """
import json, os, sys, urllib.request
def ask(text):
    body = {"model": os.environ["BENCHYARD_MODEL"], "messages": [{"role": "user", "content": text}]}
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]
with open("results.jsonl", "w") as results:
    for number in range(int(sys.argv[1])):
        line = {"id": f"sum-{number}", "passed": bool(ask(f"What is {number} + {number}?")), "output": str(number)}
        print(json.dumps(line), file=results, flush=True)
"""


def submit_harness(service: ClusterService, questions: int) -> str:
    task: dict[str, Any] = {
        "image": service.cluster.image,
        "name": "sums",
        "command": ["python3", "ask.py", str(questions)],
        "files": [{"name": "ask.py", "content": ASKING}],
        "results": {"format": "jsonl", "paths": ["results.jsonl"]},
    }
    body = {"kind": "harness", "model_id": "demo-weak", "harness": task, "instance_type": "standard-1"}
    answer = service.client.post("/api/container-runs", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["run_id"])


def test_a_harness_asks_its_model_from_its_pod(start_on_cluster: StartOnCluster) -> None:
    service = start_on_cluster(command_images="benchyard-*:*", command_pull="false", demo_latency_s=0.05)
    run = service.wait_status(submit_harness(service, 3), "completed")
    assert (run["attempt"], run["progress"]["done"]) == (1, 3)
    items = service.client.get(f"/api/container-runs/{run['id']}/items").json()["items"]
    assert {(item["problem_id"], item["outcome"]) for item in items} == {(f"sum-{n}", "passed") for n in range(3)}
    log_replays(service, run)
    service.nothing_left()


def test_a_harness_that_is_cancelled_keeps_its_items_and_leaves_no_pod(start_on_cluster: StartOnCluster) -> None:
    service = start_on_cluster(command_images="benchyard-*:*", command_pull="false", demo_latency_s=1.0)
    run_id = submit_harness(service, 10_000)
    service.wait_items(run_id, 2)
    assert service.client.post(f"/api/container-runs/{run_id}/cancel").status_code == 202
    run = service.wait_status(run_id, "cancelled")
    assert (run["reason"], run["attempt"]) == ("cancelled_by_user", 1)
    done = run["progress"]["done"]
    items = service.client.get(f"/api/container-runs/{run_id}/items?limit=500").json()["items"]
    assert done == len(items) >= 2
    log_replays(service, run)
    service.nothing_left()
    assert service.run(run_id)["attempts"][0]["exit_code"] in (0, 137, 143)
