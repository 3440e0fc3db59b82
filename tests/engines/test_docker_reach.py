"""What a runner can reach, tried from inside: the orchestrator; no internet, no host, no engine, no other runner."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.engines.conftest import RUNNER_PORT, free_port
from tests.engines.rigs import PROGRAM, DockerRig, docker, order, request, until_logged

pytestmark = [pytest.mark.anyio, pytest.mark.engine]

OTHER_PORT = free_port()
PEER_PORT = 18473
ENGINE_PORTS = (2375, 2376)


@contextlib.contextmanager
def listening(address: str, port: int) -> Iterator[None]:
    """The kernel completes connections to it; nobody has to accept."""
    with socket.create_server((address, port), backlog=16):
        yield


def addresses_of_this_machine() -> list[str]:
    text = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=True).stdout
    return [address for address in text.split() if ":" not in address]


def firewall() -> str:
    return subprocess.run(["iptables", "-w", "5", "-S", "INPUT"], capture_output=True, text=True, check=True).stdout


async def reach(rig: DockerRig, targets: list[tuple[str, int]]) -> dict[str, str]:
    asked = request(rig, order("reach", targets=targets))
    await rig.engine.launch(asked)
    text = await until_logged(rig.engine, asked.name, b"}\n", seconds=60)
    found: dict[str, str] = json.loads(text.splitlines()[-1])
    return found


async def serving_peer(rig: DockerRig) -> str:
    """Another runner, with something that listens; its address."""
    peer = request(rig, order("serve", port=PEER_PORT))
    await rig.engine.launch(peer)
    await until_logged(rig.engine, peer.name, b"ready")
    form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
    return await asyncio.to_thread(docker, "inspect", "--format", form, peer.name)


async def test_orchestrator_on_the_host(docker_rig: DockerRig) -> None:
    gateway = await docker_rig.engine.listen_address()
    peer = await serving_peer(docker_rig)
    machine = [(address, OTHER_PORT) for address in {gateway, *addresses_of_this_machine()}]
    engine = [(gateway, port) for port in ENGINE_PORTS]
    outside = [("1.1.1.1", 443), ("169.254.169.254", 80), ("example.com", 80)]
    with contextlib.ExitStack() as stack:
        stack.enter_context(listening(gateway, RUNNER_PORT))
        stack.enter_context(listening("0.0.0.0", OTHER_PORT))
        for port in ENGINE_PORTS:
            with contextlib.suppress(OSError):
                stack.enter_context(listening("0.0.0.0", port))
        for address, port in (*machine, (peer, PEER_PORT)):
            with socket.create_connection((address, port), timeout=2):
                pass  # the host itself does reach it, so what follows means something
        found = await reach(docker_rig, [("orchestrator", RUNNER_PORT), *machine, *engine, *outside, (peer, PEER_PORT)])
    assert found.pop(f"orchestrator:{RUNNER_PORT}") == "reached"
    assert "reached" not in found.values(), found
    assert "runners reach one port of the orchestrator and nothing else" in (await docker_rig.engine.info()).isolation


async def test_the_firewall_is_what_keeps_runners_from_the_host(docker_rig: DockerRig) -> None:
    """Without the rule the same probe gets through: the test above would notice."""
    gateway = await docker_rig.engine.listen_address()
    network = docker_rig.engine.network.current
    assert network is not None
    guard = docker_rig.engine.network.guard(network)
    assert guard is not None
    with listening("0.0.0.0", OTHER_PORT):
        guard.lift()
        guard.lift()
        open_door = await reach(docker_rig, [(gateway, OTHER_PORT)])
        assert guard.put()
        assert guard.put()
        closed_door = await reach(docker_rig, [(gateway, OTHER_PORT)])
    assert open_door == {f"{gateway}:{OTHER_PORT}": "reached"}
    assert "reached" not in closed_door.values()
    assert firewall().count(f"-j {guard.chain}") == 1


async def test_rules_of_a_network_that_was_removed_by_hand_are_swept(docker_rig: DockerRig) -> None:
    config = replace(docker_rig.config, network=f"{docker_rig.config.network}-gone")
    lost = DockerRig(config, docker_rig.image)
    await lost.engine.prepare()
    network = lost.engine.network.current
    assert network is not None
    await asyncio.to_thread(docker, "network", "rm", config.network)
    assert network.bridge in firewall()
    await docker_rig.engine.prepare()
    assert network.bridge not in firewall()
    await lost.close()


async def test_orchestrator_in_a_container(inner_rig: DockerRig) -> None:
    await inner_rig.engine.prepare()
    network, name = inner_rig.config.network, f"{inner_rig.config.network}-orchestrator"
    described = json.loads(await asyncio.to_thread(docker, "network", "inspect", network))[0]
    gateway = described["IPAM"]["Config"][0]["Gateway"]
    serve = ("--interactive", "--entrypoint", "python3", inner_rig.image, "-c", PROGRAM)
    label = f"benchyard.instance={inner_rig.config.instance}"
    alias = ("--network", network, "--network-alias", "orchestrator")
    await asyncio.to_thread(docker, "create", "--name", name, "--label", label, *alias, *serve)
    feeding = subprocess.Popen(["docker", "start", "--interactive", name], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        assert feeding.stdin is not None
        feeding.stdin.write(order("serve", port=RUNNER_PORT))
        feeding.stdin.close()
        await until_logged(inner_rig.engine, name, b"ready")
        quiet = request(inner_rig, order("sleep"))
        await inner_rig.engine.launch(quiet)
        form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        peer = await asyncio.to_thread(docker, "inspect", "--format", form, quiet.name)
        machine = [(address, OTHER_PORT) for address in {gateway, *addresses_of_this_machine()}]
        outside = [("1.1.1.1", 443), ("169.254.169.254", 80), ("example.com", 80), (gateway, 2375)]
        others = [(peer, port) for port in (22, 80, 8000, 8001, RUNNER_PORT)]
        with listening("0.0.0.0", OTHER_PORT):
            found = await reach(inner_rig, [("orchestrator", RUNNER_PORT), *machine, *outside, *others])
        assert found.pop(f"orchestrator:{RUNNER_PORT}") == "reached"
        assert "reached" not in found.values(), found
        assert name not in {facts.name for facts in await inner_rig.engine.list()}, "the orchestrator is no runner"
        assert "each other's addresses" in (await inner_rig.engine.info()).isolation
    finally:
        await asyncio.to_thread(docker, "rm", "--force", name)
        feeding.wait(timeout=10)
