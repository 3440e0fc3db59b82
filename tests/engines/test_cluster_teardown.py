"""`benchyard down` with the Kubernetes engine: the instance's pods and what owns them are removed, others stay."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.cli.errors import CliError
from orchestrator.cli.local.teardown import remove_instance
from orchestrator.engines.engine import LaunchRequest
from orchestrator.engines.factory import kubernetes_config
from orchestrator.engines.kubernetes.engine import KubernetesEngine
from orchestrator.settings import Settings
from tests.engines.fake_kubernetes.cluster import NAMESPACE, FakeCluster
from tests.engines.fake_kubernetes.objects.resources import BY_KIND
from tests.faults.service import wait_for

pytestmark = pytest.mark.anyio
IMAGE = "benchyard-runner:latest"


def settings_for(fake: FakeCluster, folder: Path, instance: str) -> Settings:
    return Settings(
        engine="kubernetes",
        instance=instance,
        data=folder / "data",
        kube_config=fake.kubeconfig(folder),
        kube_namespace=NAMESPACE,
        kube_runner_address="127.0.0.1",
        kube_require_policy=False,
    )


async def launch(settings: Settings, name: str) -> None:
    config = replace(
        kubernetes_config(settings, str(settings.instance)), command=(sys.executable, "-c", "input()"), call_limit_s=60
    )
    engine = KubernetesEngine(config)
    await engine.prepare()
    kind = settings.instance_type("lite")
    await engine.launch(LaunchRequest(name, name, 1, kind, IMAGE, b"{}"))
    await engine.close()


async def test_down_removes_what_is_ours_in_the_cluster(tmp_path: Path) -> None:
    with FakeCluster() as fake:
        fake.images.present.add(IMAGE)
        mine, other = (settings_for(fake, tmp_path, name) for name in ("mine", "other"))
        await launch(mine, "benchyard-run-1-a1")
        await launch(other, "benchyard-run-2-a1")
        removed = await asyncio.to_thread(remove_instance, mine)
        assert removed.containers == ["benchyard-run-1-a1"]
        left = lambda: {pod["metadata"]["labels"]["benchyard.instance"] for pod in fake.pods()}  # noqa: E731
        await asyncio.to_thread(wait_for, lambda: left() == {"other"}, 10, "the probe goes with its owner")
        owners = [
            entry["metadata"]["labels"]["benchyard.instance"]
            for entry in fake.store.all(BY_KIND["v1", "ConfigMap"], NAMESPACE)
        ]
        assert owners == ["other"]

        fake.server.down()
        with pytest.raises(CliError, match="may be left in the cluster"):
            await asyncio.to_thread(remove_instance, mine)
        fake.server.up()
