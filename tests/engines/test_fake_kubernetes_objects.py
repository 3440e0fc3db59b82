"""The fake cluster describes pods as real clusters did: every recorded state is played on it and compared field by field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines.fake_kubernetes.cluster import NAMESPACE, FakeCluster
from tests.engines.fake_kubernetes.flavour import V1_20
from tests.engines.fake_kubernetes.objects.answers import Json
from tests.engines.fake_kubernetes.pods import client_of, wait_for
from tests.engines.kubernetes_objects.refusals import refusals
from tests.engines.kubernetes_objects.scenes import IMAGE, SCENES, Scene, Stage, play

RECORDED = Path(__file__).parent / "kubernetes_objects"
FLAVOURS = {"v1.20": V1_20}
SOMETHING = "(something)"
_CHANGING = {
    "uid",
    "resourceVersion",
    "namespace",
    "nodeName",
    "hostIP",
    "podIP",
    "ip",
    "containerID",
    "imageID",
}
"""Fields that are different each time: that they are there is compared, not what they say."""
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class FakeMachines:
    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    def lose(self, node: str) -> None:
        self._cluster.cut_off(node)
        self._cluster.notice_silence(node)
        self._cluster.end_toleration(node)

    def heal(self, node: str) -> None:
        self._cluster.heal(node)


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster(V1_20, second_s=0.05) as cluster:
        cluster.images.present.add(IMAGE)
        yield cluster


def comparable(value: Any, key: str = "") -> Any:
    """The same for two clusters that behave alike. Conditions have no order; of a text, further lines are details."""
    if key in _CHANGING and value:
        return SOMETHING
    if isinstance(value, dict):
        return {name: comparable(part, name) for name, part in value.items() if name != "managedFields"}
    if isinstance(value, list):
        parts = [comparable(part) for part in value]
        return sorted(parts, key=lambda part: part["type"]) if key == "conditions" else parts
    if isinstance(value, str):
        first_line = _UID.sub(SOMETHING, value.partition("\n")[0])
        return SOMETHING if _TIME.fullmatch(value) else first_line
    return value


def settle(cluster: FakeCluster, pod: Json) -> None:
    """A pod that is told to end stays as it is once its processes are gone."""
    if pod["status"]["phase"] == "Failed":
        wait_for(lambda: not cluster.processes(pod["metadata"]["uid"]), "its processes are gone")
        before = cluster.rounds
        wait_for(lambda: cluster.rounds > before + 3, "the kubelet has looked again")


@pytest.mark.parametrize("release", FLAVOURS)
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_the_fake_speaks_as_the_real_one(cluster: FakeCluster, scene: Scene, release: str) -> None:
    recorded = json.loads((RECORDED / release / f"{scene.name}.json").read_text(encoding="utf-8"))
    with client_of(cluster) as client:
        stage = Stage(client, NAMESPACE, FakeMachines(cluster))
        played = play(stage, scene, lambda pod: settle(cluster, pod))
    assert comparable(played) == comparable(recorded)


@pytest.mark.parametrize("release", FLAVOURS)
def test_the_fake_refuses_as_the_real_one(cluster: FakeCluster, release: str) -> None:
    recorded = json.loads((RECORDED / release / "refusals.json").read_text(encoding="utf-8"))
    with client_of(cluster) as client:
        played = refusals(Stage(client, NAMESPACE, FakeMachines(cluster)))
    assert comparable(played) == comparable(recorded)


def test_every_recording_has_its_scene() -> None:
    for release in FLAVOURS:
        files = {path.stem for path in (RECORDED / release).glob("*.json")}
        assert files == {scene.name for scene in SCENES} | {"refusals"}
