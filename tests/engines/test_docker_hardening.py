"""A real container, compared with the whole hardening: as the engine describes it, and as the kernel enforces it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.engines.engine import ContainerState, EngineError, ImageMissing
from tests.engines.rigs import SMALL, TOKEN, DockerRig, docker, order, request, until_logged

pytestmark = [pytest.mark.anyio, pytest.mark.engine]

EMPTY: tuple[Any, ...] = (None, "", 0, False, [], {}, [0, 0])
CAPS = (1 << 5) | (1 << 6) | (1 << 7)  # KILL, SETGID, SETUID


async def inspected(rig: DockerRig, name: str) -> dict[str, Any]:
    described: list[dict[str, Any]] = json.loads(await asyncio.to_thread(docker, "inspect", name))
    return described[0]


async def test_the_engine_describes_exactly_the_hardening_that_was_asked_for(docker_rig: DockerRig) -> None:
    asked = request(docker_rig, order("sleep"), sandbox_slots=2)
    await docker_rig.engine.launch(asked)
    described = await inspected(docker_rig, asked.name)
    gateway = await docker_rig.engine.listen_address()
    host = {key: value for key, value in described["HostConfig"].items() if value not in EMPTY}
    masked, read_only = host.pop("MaskedPaths"), host.pop("ReadonlyPaths")
    assert {"/proc/kcore", "/proc/keys", "/sys/firmware"} <= set(masked)
    assert {"/proc/sys", "/proc/sysrq-trigger"} <= set(read_only)
    for of_the_engine in ("Runtime", "CgroupnsMode", "ShmSize"):
        host.pop(of_the_engine, None)
    host["CapAdd"] = [name.removeprefix("CAP_") for name in host["CapAdd"]]  # newer engines add the prefix
    assert host == {
        "NetworkMode": docker_rig.config.network,
        "Dns": ["203.0.113.53"],
        "ExtraHosts": [f"orchestrator:{gateway}"],
        "Memory": SMALL.memory_bytes,
        "MemorySwap": SMALL.memory_bytes,
        "NanoCpus": 500_000_000,
        "PidsLimit": 172,
        "ReadonlyRootfs": True,
        "Tmpfs": {"/tmp": f"rw,nosuid,nodev,noexec,size={SMALL.memory_bytes // 4},mode=1777"},
        "CapDrop": ["ALL"],
        "CapAdd": ["KILL", "SETGID", "SETUID"],
        "SecurityOpt": ["no-new-privileges"],
        "Init": True,
        "IpcMode": "none",
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
        "Ulimits": [{"Name": "core", "Hard": 0, "Soft": 0}],
        "LogConfig": {"Type": "json-file", "Config": {"max-file": "2", "max-size": "512k"}},
    }
    assert described["Mounts"] == []
    assert list(described["NetworkSettings"]["Networks"]) == [docker_rig.config.network]
    assert not any(described["NetworkSettings"]["Ports"].values())
    labels = {key: value for key, value in described["Config"]["Labels"].items() if key.startswith("benchyard.")}
    assert labels == {
        "benchyard.instance": docker_rig.config.instance,
        "benchyard.owner": "we",
        "benchyard.run": asked.run_id,
        "benchyard.attempt": "1",
        "benchyard.instance_type": "small",
    }


async def test_the_boot_line_shows_nowhere(docker_rig: DockerRig) -> None:
    asked = request(docker_rig, order("sleep"))
    await docker_rig.engine.launch(asked)
    await until_logged(docker_rig.engine, asked.name, b"ready")
    assert TOKEN not in json.dumps(await inspected(docker_rig, asked.name))
    assert TOKEN not in await asyncio.to_thread(docker, "logs", asked.name)
    assert TOKEN not in await asyncio.to_thread(docker, "top", asked.name, "-eo", "pid,args")
    await docker_rig.engine.kill(asked.name)
    assert TOKEN not in json.dumps(await inspected(docker_rig, asked.name))


async def test_the_kernel_enforces_it(docker_rig: DockerRig) -> None:
    asked = request(docker_rig, order("myself"))
    await docker_rig.engine.launch(asked)
    text = await until_logged(docker_rig.engine, asked.name, b"}\n")
    seen = json.loads(text.splitlines()[-1])
    status = seen["status"]
    assert {int(status[key], 16) for key in ("CapEff", "CapPrm", "CapBnd")} == {CAPS}
    assert status["NoNewPrivs"].strip() == "1"
    assert status["Seccomp"].strip() == "2"
    assert "ro" in seen["root"]
    assert {"rw", "nosuid", "nodev", "noexec"} <= set(seen["tmp"])
    assert seen["tmp_bytes"] == SMALL.memory_bytes // 4
    assert not seen["shm"]
    assert seen["core"] == [0, 0]
    assert seen["hostname"] == "runner"
    assert not seen["engine_socket"]
    ours = {"HOME": "/tmp", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", "HOSTNAME": "runner"}
    assert ours.items() <= seen["environment"].items()
    assert not [name for name in seen["environment"] if "KEY" in name or "TOKEN" in name or "PASSWORD" in name]


async def test_a_missing_image_is_told_and_nothing_is_left(docker_rig: DockerRig) -> None:
    asked = request(docker_rig, order("sleep"), image="benchyard-no-such-image:1")
    with pytest.raises(ImageMissing, match=r"benchyard-no-such-image:1 is not on this engine.*images build"):
        await docker_rig.engine.launch(asked)
    assert await docker_rig.engine.inspect(asked.name) is None


async def test_a_lost_network_is_made_again_by_the_next_launch(docker_rig: DockerRig, base_image: str) -> None:
    config = replace(docker_rig.config, network=f"{docker_rig.config.network}-b", runner_port=None)
    rig = DockerRig(config, base_image)
    await rig.engine.prepare()
    await asyncio.to_thread(docker, "network", "rm", config.network)
    asked = request(rig, order("sleep"))
    with pytest.raises(EngineError, match="was removed; it is being made again"):
        await rig.engine.check()
    assert (await rig.engine.launch(asked)).state is ContainerState.RUNNING
    await rig.engine.remove(asked.name)
    await rig.engine.teardown()
    await rig.close()


async def test_a_network_that_leads_outside_is_never_used(docker_rig: DockerRig, base_image: str) -> None:
    config = replace(docker_rig.config, network=f"{docker_rig.config.network}-c", runner_port=None)
    rig = DockerRig(config, base_image)
    await asyncio.to_thread(docker, "network", "create", config.network)
    try:
        with pytest.raises(EngineError, match="docker network rm"):
            await rig.engine.launch(request(rig, order("sleep")))
    finally:
        await asyncio.to_thread(docker, "network", "rm", config.network)
        await rig.close()
