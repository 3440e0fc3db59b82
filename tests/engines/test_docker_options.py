"""The whole of what is asked of Docker, for every shape of request."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.engines.docker.options import (
    MIB,
    DockerEngineConfig,
    create_options,
    host_config,
    nano_cpus,
    network_options,
    tmp_bytes,
)
from orchestrator.engines.engine import EngineError, InstanceType, LaunchRequest, NameTaken
from orchestrator.engines.launch_rules import check_fits, check_ours, check_same_attempt, is_runner, labels_of

TOKEN = "tok-4e1f0c"
LITE = InstanceType("lite", 1 / 16, 256 * MIB, 2_000_000_000)
BASIC = InstanceType("basic", 0.25, 1024 * MIB, 4_000_000_000)
STANDARD_4 = InstanceType("standard-4", 4, 12 * 1024 * MIB, 20_000_000_000)
CONFIG = DockerEngineConfig(instance="here")
CONTAINER_MODE = replace(CONFIG, host_mode=False)
GATEWAY = "172.30.0.1"


def request(**changes: Any) -> LaunchRequest:
    base = LaunchRequest(
        name="benchyard-run-7-a2",
        run_id="7",
        attempt=2,
        instance_type=BASIC,
        image="benchyard-runner",
        boot_line=json.dumps({"token": TOKEN}).encode(),
        sandbox_slots=2,
    )
    return replace(base, **changes)


def test_everything_that_is_asked_in_host_mode() -> None:
    assert create_options(request(), CONFIG, GATEWAY) == {
        "name": "benchyard-run-7-a2",
        "image": "benchyard-runner",
        "hostname": "runner",
        "labels": {
            "benchyard.instance": "here",
            "benchyard.run": "7",
            "benchyard.attempt": "2",
            "benchyard.instance_type": "basic",
        },
        "environment": {"HOME": "/tmp", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        "stdin_open": True,
        "tty": False,
        "detach": False,
        "use_config_proxy": False,
        "host_config": {
            "NetworkMode": "benchyard-runners",
            "Dns": ["203.0.113.53"],
            "ExtraHosts": ["orchestrator:172.30.0.1"],
            "Memory": 1073741824,
            "MemorySwap": 1073741824,
            "NanoCpus": 250_000_000,
            "PidsLimit": 172,
            "ReadonlyRootfs": True,
            "Tmpfs": {"/tmp": "rw,nosuid,nodev,noexec,size=67108864,mode=1777"},
            "CapDrop": ["ALL"],
            "CapAdd": ["KILL", "SETGID", "SETUID"],
            "SecurityOpt": ["no-new-privileges"],
            "Privileged": False,
            "Init": True,
            "IpcMode": "none",
            "AutoRemove": False,
            "RestartPolicy": {"Name": "no"},
            "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "512k", "max-file": "2"}},
        },
    }


def test_container_mode_differs_only_in_the_extra_host() -> None:
    on_host = host_config(request(), CONFIG, GATEWAY)
    in_container = host_config(request(), CONTAINER_MODE, None)
    assert on_host.pop("ExtraHosts") == ["orchestrator:172.30.0.1"]
    assert on_host == in_container


def test_host_mode_without_an_address_is_refused() -> None:
    with pytest.raises(EngineError, match="benchyard-runners has no address"):
        host_config(request(), CONFIG, None)


@pytest.mark.parametrize("config", [CONFIG, CONTAINER_MODE], ids=["host", "container"])
def test_the_boot_line_is_nowhere(config: DockerEngineConfig) -> None:
    assert TOKEN not in json.dumps(create_options(request(), config, GATEWAY))
    assert TOKEN not in repr(request())


@pytest.mark.parametrize("config", [CONFIG, CONTAINER_MODE], ids=["host", "container"])
def test_nothing_of_the_machine_is_given_away(config: DockerEngineConfig) -> None:
    asked = host_config(request(), config, GATEWAY)
    given = {
        "Binds",
        "Mounts",
        "Devices",
        "DeviceRequests",
        "PidMode",
        "UTSMode",
        "UsernsMode",
        "PortBindings",
        "VolumesFrom",
    }
    assert not given & set(asked)
    assert asked["NetworkMode"] not in {"host", "bridge", "default"}


@pytest.mark.parametrize(
    ("kind", "memory", "cpus", "tmp"),
    [
        pytest.param(LITE, 256 * MIB, 62_500_000, 64 * MIB, id="lite"),
        pytest.param(BASIC, 1024 * MIB, 250_000_000, 64 * MIB, id="basic"),
        pytest.param(STANDARD_4, 12 * 1024 * MIB, 4_000_000_000, 64 * MIB, id="standard-4"),
        pytest.param(InstanceType("tiny", 0.001, 64 * MIB, 1), 64 * MIB, 10_000_000, 16 * MIB, id="tiny"),
    ],
)
def test_limits_come_from_the_instance_type(kind: InstanceType, memory: int, cpus: int, tmp: int) -> None:
    asked = host_config(request(instance_type=kind), CONFIG, GATEWAY)
    assert (asked["Memory"], asked["MemorySwap"], asked["NanoCpus"]) == (memory, memory, cpus)
    assert f"size={tmp}," in asked["Tmpfs"]["/tmp"]
    assert tmp_bytes(kind) == tmp


@pytest.mark.parametrize(("slots", "pids"), [(0, 32), (1, 102), (2, 172), (8, 592)])
def test_the_process_limit_grows_with_the_sandbox_slots(slots: int, pids: int) -> None:
    assert host_config(request(sandbox_slots=slots), CONFIG, GATEWAY)["PidsLimit"] == pids


@pytest.mark.parametrize(("vcpu", "nano"), [(0, 10_000_000), (1 / 16, 62_500_000), (1 / 3, 333_333_334), (2, 2_000_000_000)])
def test_nano_cpus(vcpu: float, nano: int) -> None:
    assert nano_cpus(vcpu) == nano


def test_an_instance_type_larger_than_the_engine_is_refused_with_advice() -> None:
    with pytest.raises(EngineError, match=r"standard-4 wants 4 vCPU and this engine has 2: choose a smaller"):
        check_fits(STANDARD_4, 2)
    check_fits(STANDARD_4, 4)
    check_fits(LITE, 1)


def test_the_command_can_be_replaced() -> None:
    assert "entrypoint" not in create_options(request(), CONFIG, GATEWAY)
    replaced = create_options(request(), replace(CONFIG, command=("python3", "-V")), GATEWAY)
    assert replaced["entrypoint"] == ["python3", "-V"]
    assert "command" not in replaced


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        pytest.param({}, True, id="same"),
        pytest.param({"benchyard.instance_type": "lite"}, True, id="the type may have been edited since"),
        pytest.param({"more": "labels"}, True, id="labels of the image"),
        pytest.param({"benchyard.attempt": "1"}, False, id="older attempt"),
        pytest.param({"benchyard.run": "8"}, False, id="other run"),
        pytest.param({"benchyard.instance": "there"}, False, id="other instance"),
    ],
)
def test_whose_container_it_is(changes: dict[str, str], same: bool) -> None:
    with contextlib.nullcontext() if same else pytest.raises(NameTaken, match="left alone"):
        check_same_attempt({**labels_of(request(), "here"), **changes}, request(), "here")


def test_a_container_without_labels_is_foreign() -> None:
    with pytest.raises(NameTaken):
        check_same_attempt({}, request(), "here")
    with pytest.raises(NameTaken):
        check_ours({}, "x", "here")
    check_ours({"benchyard.instance": "here"}, "x", "here")


def test_an_orchestrators_own_container_is_no_runner() -> None:
    assert is_runner(labels_of(request(), "here"), "here")
    assert not is_runner(labels_of(request(), "there"), "here")
    assert not is_runner({"benchyard.instance": "here"}, "here")


def test_networks_are_internal_and_differ_by_mode() -> None:
    shared = {
        "name": "benchyard-runners",
        "driver": "bridge",
        "internal": True,
        "check_duplicate": True,
        "labels": {"benchyard.instance": "here"},
    }
    assert network_options(CONFIG) == {**shared, "options": {"com.docker.network.bridge.enable_icc": "false"}}
    assert network_options(CONTAINER_MODE) == {**shared, "options": {"com.docker.network.bridge.inhibit_ipv4": "true"}}
