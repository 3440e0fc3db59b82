"""The cluster that tests use: the one in KUBECONFIG, or two nodes that `scripts/kubernetes-here` starts on this machine.

BENCHYARD_RUNNER_IMAGE names another image of the runner. With a cluster of one's own, that is the name as its nodes know it,
and BENCHYARD_RUNNER_HOST the address at which its pods reach this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts/kubernetes-here"
IMAGE = "benchyard-runner:latest"


class NoKubernetes(AssertionError):
    """There is neither a cluster in KUBECONFIG nor a Kubernetes that was built for this machine."""


@dataclass(frozen=True)
class Cluster:
    kubeconfig: Path
    image: str = IMAGE
    host: str = ""
    """The address of this machine, as pods know it."""
    number: int | None = None
    """Which of the clusters on this machine it is; None: a cluster of somebody else's, whose nodes are left alone."""

    def here(self, *arguments: str, text: str | None = None) -> str:
        """Call `scripts/kubernetes-here`, which can do to nodes what an administrator cannot."""
        assert self.number is not None, "only the nodes of scripts/kubernetes-here may be killed or cut off"
        return here(*arguments, number=self.number, text=text)

    def kubectl(self, *arguments: str, text: str | None = None, check: bool = True, limit_s: float = 600) -> str:
        command = [kubectl(), "--kubeconfig", str(self.kubeconfig), *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=limit_s, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def objects(self, kind: str, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        flags = ["-l", selector] if selector else []
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", kind, "-n", namespace, *flags, "-o", "json"))["items"]
        return found

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def nodes(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]
        return found

    def ready_nodes(self) -> set[str]:
        return {
            node["metadata"]["name"]
            for node in self.nodes()
            for condition in node["status"]["conditions"]
            if condition["type"] == "Ready" and condition["status"] == "True"
        }

    @contextmanager
    def namespace(self) -> Iterator[str]:
        """A namespace for one service or test, with nothing else in it."""
        name = "benchyard-test-" + uuid.uuid4().hex[:8]
        self.kubectl("create", "namespace", name)
        try:
            yield name
        finally:
            self.kubectl("delete", "namespace", name, "--wait=false")


def kubectl() -> str:
    """The one that was built with the cluster, or the user's."""
    built = cache() / "bin/kubectl"
    if built.exists():
        return str(built)
    found = shutil.which("kubectl")
    if found is None:
        raise NoKubernetes("kubectl is not installed")
    return found


def cache() -> Path:
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "benchyard/kubernetes-1.20.2"
    return Path(os.environ.get("BENCHYARD_KUBERNETES_CACHE") or default)


def here(*arguments: str, number: int, text: str | None = None) -> str:
    environment = {**os.environ, "BENCHYARD_KUBERNETES_CLUSTER": str(number)}
    done = subprocess.run(
        [SCRIPT, *arguments], env=environment, input=text, capture_output=True, text=True, timeout=1200, check=False
    )
    if done.returncode != 0:
        raise AssertionError(f"kubernetes-here {' '.join(arguments)}: {done.stderr.strip()[-3000:]}")
    return done.stdout.strip()


@contextmanager
def cluster_of_this_machine(number: int = 0) -> Iterator[Cluster]:
    """Two nodes for as long as the block lasts. A cluster that was up before stays up."""
    environment = {**os.environ, "BENCHYARD_KUBERNETES_CLUSTER": str(number)}
    was_up = subprocess.run([SCRIPT, "status"], env=environment, capture_output=True, check=False).returncode == 0
    try:
        image = os.environ.get("BENCHYARD_RUNNER_IMAGE", IMAGE)
        kubeconfig = here("up", image, number=number).splitlines()[-1]
        yield Cluster(Path(kubeconfig), image, host=f"10.99.{number}.1", number=number)
    finally:
        if not was_up:
            here("down", number=number)


@contextmanager
def any_cluster() -> Iterator[Cluster]:
    """The user's cluster, if KUBECONFIG names one."""
    given = os.environ.get("KUBECONFIG")
    if given:
        image, host = os.environ.get("BENCHYARD_RUNNER_IMAGE", IMAGE), os.environ.get("BENCHYARD_RUNNER_HOST", "")
        yield Cluster(Path(given), image, host)
        return
    with cluster_of_this_machine(int(os.environ.get("BENCHYARD_KUBERNETES_CLUSTER", "0"))) as cluster:
        yield cluster
