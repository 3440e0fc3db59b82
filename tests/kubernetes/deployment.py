"""The shipped manifests on the cluster of the tests: in namespaces of their own, and with what that cluster lacks."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.deploy.rendering import DEPLOY, ROOT, Manifest, kustomize, one
from tests.faults.service import wait_for
from tests.kubernetes.cluster import Cluster

IMAGE = os.environ.get("BENCHYARD_ORCHESTRATOR_IMAGE", "benchyard-orchestrator:latest")


def moved(objects: list[Manifest], namespace: str) -> list[Manifest]:
    """The same objects in other namespaces, so that an installation which the cluster may have is left alone."""
    names = {"benchyard": namespace, "benchyard-runners": f"{namespace}-runners"}

    def move(value: Any) -> Any:
        if isinstance(value, list):
            return [move(entry) for entry in value]
        if not isinstance(value, dict):
            return value
        result = {key: move(entry) for key, entry in value.items()}
        for key in ("namespace", "kubernetes.io/metadata.name"):
            if isinstance(result.get(key), str):
                result[key] = names.get(result[key], result[key])
        if result.get("name") == "BENCHYARD_KUBE_NAMESPACE":
            result["value"] = names["benchyard-runners"]
        return result

    result = [move(copy.deepcopy(entry)) for entry in objects]
    for entry in result:
        if entry["kind"] == "Namespace":
            entry["metadata"]["name"] = names[entry["metadata"]["name"]]
        elif entry["kind"].startswith("ClusterRole"):
            entry["metadata"]["name"] += f"-{namespace}"
    return result


def served(cluster: Cluster, objects: list[Manifest]) -> list[Manifest]:
    """Without the kinds that this version of Kubernetes does not have yet: before 1.21, budgets for disruptions."""
    versions = set(cluster.kubectl("api-versions").split())
    unknown = {(entry["apiVersion"], entry["kind"]) for entry in objects if entry["apiVersion"] not in versions}
    assert unknown <= {("policy/v1", "PodDisruptionBudget")}
    return [entry for entry in objects if (entry["apiVersion"], entry["kind"]) not in unknown]


class Deployment:
    """An overlay as `kubectl apply -k` installs it, by default the one for trying out."""

    def __init__(self, cluster: Cluster, *, overlay: str = "kind", require_policy: bool = False, **settings: str) -> None:
        self.cluster = cluster
        self._overlay = kustomize(DEPLOY / "kubernetes/overlays" / overlay)
        self._settings = {
            "BENCHYARD_RUNNER_IMAGE": cluster.image,
            "BENCHYARD_DEMO_LATENCY_S": "0.01",
            **settings,
        }
        if cluster.number is not None and not require_policy:
            self._settings["BENCHYARD_KUBE_REQUIRE_POLICY"] = "false"  # the network of scripts/kubernetes-here enforces none
        self.namespace = "benchyard-test-" + uuid.uuid4().hex[:8]
        self.runners = f"{self.namespace}-runners"
        self._postgres = subprocess.check_output([ROOT / "scripts/postgres-image"], text=True).strip()

    def objects(self) -> list[Manifest]:
        objects = served(self.cluster, moved(self._overlay, self.namespace))
        service = one(objects, "Service", "benchyard")["spec"]
        service.pop("type", None)
        service["ports"][0].pop("nodePort", None)  # may be taken
        orchestrator = one(objects, "Deployment", "benchyard")["spec"]["template"]["spec"]["containers"][0]
        orchestrator["image"] = IMAGE
        database = one(objects, "StatefulSet", "benchyard-postgres")["spec"]["template"]["spec"]
        database["containers"][0]["image"] = self._postgres
        if not self._postgres.startswith("postgres:"):
            self._run_as_postgres(database["securityContext"])
        next(entry for entry in objects if entry["kind"] == "ConfigMap")["data"].update(self._settings)
        if self.cluster.number is not None:
            # scripts/kubernetes-here has no DNS.
            address = {
                "name": "DATABASE_URL",
                "value": "postgresql://benchyard@$(BENCHYARD_POSTGRES_SERVICE_HOST)/benchyard",
            }
            orchestrator["env"] = [address if entry["name"] == "DATABASE_URL" else entry for entry in orchestrator["env"]]
        return objects

    def _run_as_postgres(self, context: dict[str, Any]) -> None:
        """The image that scripts/postgres-image builds from Debian's packages has another user id than the official one."""
        words = ["docker", "run", "--rm", "--network", "none", "--entrypoint", "id", self._postgres]
        user, group = (int(subprocess.check_output([*words, flag, "postgres"], text=True)) for flag in ("-u", "-g"))
        context |= {"runAsUser": user, "runAsGroup": group, "fsGroup": group}

    def volumes(self, folder: Path) -> list[Manifest]:
        """Folders of this machine, which both nodes see."""
        claims = [entry for entry in self._overlay if entry["kind"] == "PersistentVolumeClaim"]
        for maker in (entry for entry in self._overlay if entry["kind"] == "StatefulSet"):
            for template in maker["spec"]["volumeClaimTemplates"]:
                name = f"{template['metadata']['name']}-{maker['metadata']['name']}-0"
                claims.append({"metadata": {"name": name}, "spec": template["spec"]})
        volumes = []
        for claim, spec in ((entry["metadata"]["name"], entry["spec"]) for entry in claims):
            path = folder / claim
            path.mkdir()
            path.chmod(0o777)
            volumes.append(
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolume",
                    "metadata": {"name": f"{self.namespace}-{claim}"},
                    "spec": {
                        "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                        "accessModes": spec["accessModes"],
                        "persistentVolumeReclaimPolicy": "Retain",
                        "hostPath": {"path": str(path)},
                        "claimRef": {"namespace": self.namespace, "name": claim},
                    },
                }
            )
        return volumes

    def secret(self, name: str, values: Mapping[str, str]) -> Manifest:
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": dict(values)}

    def kubectl(self, *words: str, text: str | None = None, check: bool = True) -> str:
        return self.cluster.kubectl("--namespace", self.namespace, *words, text=text, check=check)

    def benchyard(self, *words: str, check: bool = True) -> str:
        """The command in the orchestrator's pod, as the documents call it."""
        return self.kubectl("exec", "deployment/benchyard", "--", "benchyard", *words, check=check)

    def wait_ready(self) -> None:
        def state() -> str:
            return self.kubectl("get", "pods,events") + self.kubectl(
                "logs", "deployment/benchyard", "--tail=20", check=False
            )

        def ready() -> bool:
            done = self.kubectl("rollout", "status", "deployment/benchyard", "--timeout=5s", check=False)
            return "successfully rolled out" in done

        wait_for(ready, 120, lambda: f"the service is ready: {state()}", every_s=1)

    def run(self, sample_size: int, model: str = "demo-strong") -> dict[str, Any]:
        words = ("run", "--model", model, "--benchmark", "sample", "--sample-size", str(sample_size), "--json")
        run: dict[str, Any] = json.loads(self.benchyard(*words))["runs"][0]
        return run

    def runner_pods(self, run_id: str | None = None) -> list[str]:
        """Of one run; without its id, of all runs, and the probe of the network policy."""
        label = f"benchyard.run={run_id}" if run_id else "benchyard.run"
        return [entry["metadata"]["name"] for entry in self.cluster.objects("pods", self.runners, label)]


@contextmanager
def deployed(
    cluster: Cluster,
    folder: Path,
    *,
    overlay: str = "kind",
    require_policy: bool = False,
    secrets: Mapping[str, Mapping[str, str]] | None = None,
    **settings: str,
) -> Iterator[Deployment]:
    """The overlay's service, ready. `secrets` are those that its user has to make."""
    deployment = Deployment(cluster, overlay=overlay, require_policy=require_policy, **settings)
    objects = [*deployment.objects(), *(deployment.secret(name, value) for name, value in (secrets or {}).items())]
    volumes = deployment.volumes(folder) if cluster.number is not None else []
    if cluster.number is not None:
        images = {
            container["image"]
            for entry in objects
            if "template" in entry.get("spec", {})
            for container in _containers(entry)
        }
        cluster.here("load", *sorted(images | {cluster.image}))
    try:
        cluster.apply(*volumes, *objects)
        deployment.wait_ready()
        yield deployment
    finally:
        cluster.kubectl("delete", "namespace", deployment.runners, deployment.namespace, "--ignore-not-found")
        for volume in volumes:
            cluster.kubectl("delete", "persistentvolume", volume["metadata"]["name"], "--ignore-not-found")


def _containers(maker: Manifest) -> list[Any]:
    containers: list[Any] = maker["spec"]["template"]["spec"]["containers"]
    return containers
