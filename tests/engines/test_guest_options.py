"""What is asked of Docker for a user's image, and which images are allowed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.engines.docker.guest_images import Guest, check_allowed, is_allowed, kit_options, read_guest
from orchestrator.engines.docker.options import MIB, DockerEngineConfig, create_options, guest_walls
from orchestrator.engines.engine import DiskLimit, EngineError, InstanceType, LaunchRequest
from orchestrator.engines.launch_rules import scratch_bytes

CONFIG = DockerEngineConfig(instance="here", guest_images=("py:*",))
REQUEST = LaunchRequest(
    name="benchyard-run-7-a1",
    run_id="7",
    attempt=1,
    instance_type=InstanceType("basic", 0.25, 1024 * MIB, 4_000_000_000),
    image="benchyard-runner",
    boot_line=b"{}",
    guest="py:3",
)
DESCRIBED = {
    "Id": "sha256:abc",
    "Config": {
        "Env": ["PATH=/x", "LD_PRELOAD=/jemalloc.so", "PYTHONPATH=/y", "EMPTY="],
        "WorkingDir": "/srv",
        "User": "1000",
    },
}


def options(guest: Guest | None, config: DockerEngineConfig = CONFIG) -> dict[str, Any]:
    return create_options(REQUEST, config, "172.30.0.1", guest)


def test_a_guest_differs_from_a_runner_in_nothing_but_what_it_needs() -> None:
    own, guest = options(None), options(read_guest("py:3", DESCRIBED, "the-kit", network=False))
    assert {key for key in guest if guest[key] != own.get(key)} == {
        "image", "entrypoint", "command", "user", "working_dir", "environment", "healthcheck", "host_config"
    }  # fmt: skip
    ours, its = own["host_config"], guest["host_config"]
    assert {key for key in its if its[key] != ours.get(key)} == {
        "VolumesFrom", "PidsLimit", "Tmpfs", "CapAdd", "IpcMode", "ShmSize"
    }  # fmt: skip
    assert its["VolumesFrom"] == ["the-kit:ro"]
    assert (its["ReadonlyRootfs"], its["CapDrop"], its["SecurityOpt"]) == (True, ["ALL"], ["no-new-privileges"])
    assert guest["image"] == "sha256:abc", "the image that was looked at, whatever its name points to meanwhile"


@pytest.mark.parametrize(
    ("memory_mib", "disk_gb", "scratch"),
    [(1024, 4, 512 << 20), (12288, 20, 6 << 30), (65536, 4, 4 * 10**9)],
    ids=["half the memory", "more than a GiB", "no more than the disk"],
)
def test_disk_in_memory_is_the_types_disk_or_half_its_memory(memory_mib: int, disk_gb: int, scratch: int) -> None:
    kind = InstanceType("k", 1, memory_mib << 20, disk_gb * 10**9)
    guest = read_guest("py:3", DESCRIBED, "the-kit", network=False)
    walls = guest_walls(kind, guest, DiskLimit.MEMORY)
    assert f",size={scratch}," in walls["Tmpfs"]["/tmp"]
    assert "Mounts" not in walls
    assert scratch_bytes(kind, DiskLimit.MEMORY) == scratch


def test_where_the_engine_can_limit_disk_the_type_has_all_of_it() -> None:
    kind = InstanceType("k", 1, 1 << 30, 8 * 10**9)
    walls = guest_walls(kind, read_guest("py:3", DESCRIBED, "the-kit", network=False), DiskLimit.QUOTA)
    (mount,) = walls["Mounts"]
    assert (mount["Type"], mount["Target"]) == ("volume", "/tmp")
    assert mount["VolumeOptions"]["DriverConfig"] == {"Name": "local", "Options": {"size": "8000000000"}}
    assert "Source" not in mount, "a volume without a name goes with its container"
    assert walls["Tmpfs"] == {}
    assert scratch_bytes(kind, DiskLimit.FILE) is None


def test_variables_of_the_image_reach_the_command_and_not_the_runner() -> None:
    told = options(read_guest("py:3", DESCRIBED, "the-kit", network=False))["environment"]
    assert (told["LD_PRELOAD"], told["PYTHONHOME"]) == ("", "/opt/benchyard-kit")
    guest = json.loads(told["BENCHYARD_GUEST"])
    assert guest["env"] == {"PATH": "/x", "LD_PRELOAD": "/jemalloc.so", "PYTHONPATH": "/y", "EMPTY": ""}
    assert (guest["workdir"], guest["network"]) == ("/srv", False)


def test_names_are_looked_up_only_where_there_is_a_network() -> None:
    guest = read_guest("py:3", DESCRIBED, "the-kit", network=True)
    assert "Dns" not in options(guest, replace(CONFIG, guest_network="bench"))["host_config"]
    assert "Dns" in options(replace(guest, network=False))["host_config"]


def test_the_kit_is_named_for_its_image_and_has_no_network() -> None:
    kit = kit_options("here", "benchyard-runner", "sha256:0123456789abcdef")
    assert kit["name"] == "benchyard-kit-here-0123456789ab"
    assert kit["labels"]["benchyard.instance"] == "here"
    assert "benchyard.run" not in kit["labels"], "the sweep of orphans must not see it"
    assert kit["host_config"] == {"NetworkMode": "none"}


@pytest.mark.parametrize(
    ("image", "patterns", "allowed"),
    [
        ("py:3", ("py:*",), True),
        ("py", ("py:latest",), True),
        ("py", ("py",), True),
        ("evil/py:3", ("py:*",), False),
        ("host:5000/py", ("host:5000/*",), True),
        ("PY:3", ("py:*",), False),
        ("py@sha256:ab", ("py@sha256:*",), True),
        ("py:3", (), False),
    ],
)
def test_patterns(image: str, patterns: tuple[str, ...], allowed: bool) -> None:
    assert is_allowed(image, patterns) is allowed


def test_a_refusal_says_what_to_set_and_our_own_image_is_never_refused() -> None:
    check_allowed("benchyard-runner", "benchyard-runner", ())
    with pytest.raises(EngineError, match="BENCHYARD_COMMAND_IMAGES"):
        check_allowed("py:3", "benchyard-runner", ("rust:*",))
