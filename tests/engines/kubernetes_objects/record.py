"""Record the scenes on a real cluster, one file per state.

    python -m tests.engines.kubernetes_objects.record [SCENE...]

With KUBECONFIG, on that cluster, without the scene that cuts a node off. Without it, on the cluster that
`scripts/kubernetes-here up` made; BENCHYARD_KUBERNETES_CLUSTER says which. Files go to a folder named for the release.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from tests.engines.fake_kubernetes.objects.answers import Json
from tests.engines.kubernetes_objects.refusals import refusals
from tests.engines.kubernetes_objects.scenes import SCENES, Stage, play

HERE = Path(__file__).parents[3] / "scripts" / "kubernetes-here"
NAMESPACE = "scenes"
SETTLED_S = 12
"""Longer than a kubelet needs to notice an end, and a pod to be killed after its grace."""


def _kubectl(*arguments: str) -> list[str]:
    return ["kubectl", *arguments] if os.environ.get("KUBECONFIG") else [str(HERE), "kubectl", *arguments]


class MachinesHere:
    def lose(self, node: str) -> None:
        subprocess.run([HERE, "cut", node], check=True)

    def heal(self, node: str) -> None:
        subprocess.run([HERE, "heal", node], check=True)


@contextlib.contextmanager
def _proxy() -> Iterator[httpx.Client]:
    """A door to the API server that needs no certificates."""
    process = subprocess.Popen(_kubectl("proxy", "--port=0"), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        match = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline())
        assert match is not None, "kubectl proxy did not say where it listens"
        with httpx.Client(base_url=f"http://{match[0]}", timeout=60) as client:
            yield client
    finally:
        process.terminate()
        process.wait()


def _ready(client: httpx.Client) -> None:
    """Wait until every node is ready: the scene before may have cut one off."""
    while True:
        nodes = client.get("/api/v1/nodes").json()["items"]
        if all("taints" not in node["spec"] for node in nodes):
            return
        time.sleep(0.5)


def _write(folder: Path, name: str, pod: Json) -> None:
    """Without what says nothing about the pod: who wrote its fields, and the registry that a runtime thinks of by itself."""
    pod["metadata"].pop("managedFields", None)
    spec, written = pod["spec"], pod["status"]
    containers = [*spec["containers"], *spec.get("initContainers", [])]
    images = {container["name"]: container["image"] for container in containers}
    for status in [*written.get("containerStatuses", []), *written.get("initContainerStatuses", [])]:
        if status["image"].endswith(f"/{images[status['name']]}"):
            status["image"] = images[status["name"]]
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(pod, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main(names: list[str]) -> None:
    with _proxy() as client:
        version = client.get("/version").json()
        folder = Path(__file__).parent / f"v{version['major']}.{version['minor'].rstrip('+')}"
        client.post("/api/v1/namespaces", json={"metadata": {"name": NAMESPACE}})
        accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
        while client.get(accounts).status_code != 200:
            time.sleep(0.2)
        stage = Stage(client, NAMESPACE, MachinesHere())
        for scene in SCENES:
            if (names and scene.name not in names) or (scene.name == "lost_node" and os.environ.get("KUBECONFIG")):
                continue
            _ready(client)
            print(scene.name, flush=True)
            _write(folder, scene.name, play(stage, scene, lambda _: time.sleep(SETTLED_S)))
        if not names or "refusals" in names:
            text = json.dumps(refusals(stage), indent=1, sort_keys=True) + "\n"
            (folder / "refusals.json").write_text(text, encoding="utf-8")
        client.delete(f"/api/v1/namespaces/{NAMESPACE}")


if __name__ == "__main__":
    main(sys.argv[1:])
