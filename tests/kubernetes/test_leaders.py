"""Two orchestrators in the cluster, from the shipped overlay: one leads; the other takes over when it is lost."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.counting_provider import CountingProvider
from tests.faults.service import wait_for
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.deployment import Deployment, deployed

pytestmark = [pytest.mark.kubernetes, pytest.mark.own_nodes, pytest.mark.slow]

MODEL = "counting-priced"
ITEMS, CONCURRENCY, DONE = 12, 2, 4
WHO = "import json, urllib.request as r; print(json.load(r.urlopen('http://127.0.0.1:8000/readyz'))['leader'])"


@pytest.fixture
def provider(cluster: Cluster, tmp_path: Path) -> Iterator[CountingProvider]:
    with CountingProvider(tmp_path / "provider.log", latency_s=0.05, host=cluster.host) as listening:
        yield listening
        listening.allow()  # it ends when it has answered everything


@pytest.fixture
def deployment(cluster: Cluster, tmp_path: Path, provider: CountingProvider) -> Iterator[Deployment]:
    secrets = {
        "benchyard-postgres": {"password": "benchyard"},
        "benchyard-secrets": {
            "BENCHYARD_TOKEN": "t" * 32,
            "BENCHYARD_MASTER_KEY": base64.b64encode(bytes(32)).decode(),
            "OPENAI_API_KEY": "counted",
        },
    }
    with deployed(
        cluster, tmp_path, overlay="high-availability", secrets=secrets,
        OPENAI_BASE_URL=provider.base_url, BENCHYARD_PROVIDER_OPENAI_ALLOW_PRIVATE="1",
    ) as made:  # fmt: skip
        yield made


def orchestrators(deployment: Deployment) -> list[str]:
    pods = deployment.cluster.objects("pods", deployment.namespace, "app.kubernetes.io/component=orchestrator")
    return sorted(pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"])


def leaders(deployment: Deployment) -> list[str]:
    """Those who say that they lead."""
    return [
        pod
        for pod in orchestrators(deployment)
        if deployment.kubectl("exec", pod, "--", "python", "-I", "-c", WHO, check=False) == "True"
    ]


def test_the_leader_is_lost_in_the_middle_of_a_run(deployment: Deployment, provider: CountingProvider) -> None:
    def benchyard(*words: str) -> Any:
        """By way of an orchestrator that lives, whichever that is."""
        return json.loads(deployment.kubectl("exec", survivor, "--", "benchyard", *words, "--json"))

    def shown() -> dict[str, Any]:
        run: dict[str, Any] = benchyard("show", run_id)
        assert run["status"] != "failed", run
        return run

    assert len(orchestrators(deployment)) == 2
    (leader,) = wait_for(lambda: leaders(deployment), 60, "one leads", every_s=1)
    (survivor,) = set(orchestrators(deployment)) - {leader}
    prices = ("--input-price", "1", "--output-price", "2")
    benchyard("models", "add", MODEL, "--provider", "openai", "--name", "counting", *prices)
    provider.allow(DONE)
    words = ("run", "--model", MODEL, "--benchmark", "sample", "--sample-size", str(ITEMS))
    run_id = benchyard(*words, "--concurrency", str(CONCURRENCY), "--detach")["runs"][0]["id"]
    wait_for(lambda: shown()["progress"]["done"] == DONE, 180, lambda: f"it is half-way: {shown()}", every_s=1)
    runners = deployment.runner_pods(run_id)
    assert len(runners) == 1

    deployment.kubectl("delete", "pod", leader, "--force", "--grace-period=0")
    wait_for(lambda: leaders(deployment) == [survivor], 60, "the other one leads", every_s=1)
    assert deployment.runner_pods(run_id) == runners, "the runner works on"
    provider.allow()
    wait_for(lambda: shown()["status"] == "completed", 180, lambda: f"the run completes: {shown()}", every_s=1)
    run = shown()
    assert (run["attempt"], run["progress"]["done"]) == (1, ITEMS)
    asked = Counter(json.dumps(question, sort_keys=True) for question in provider.questions())
    assert len(asked) == ITEMS, "every question was asked"
    assert asked.total() - ITEMS <= CONCURRENCY, "and none again, but for those under way when the leader was lost"
    wait_for(lambda: not deployment.runner_pods(run_id), 60, "no pod of it is left")
