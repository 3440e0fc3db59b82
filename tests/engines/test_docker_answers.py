"""How answers of several engine and cgroup versions are read, and when an existing network may be used."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from orchestrator.engines.docker.facts import isolation_sentence, read_container, read_stats, read_time
from orchestrator.engines.docker.host_firewall import HostGuard, closed_rules, guarded_bridges, rules
from orchestrator.engines.docker.network import is_replaceable, is_usable, read_network, refusal
from orchestrator.engines.docker.options import DockerEngineConfig, network_options
from orchestrator.engines.engine import ContainerState, ContainerStats

CONFIG = DockerEngineConfig(instance="here")
CONTAINER_MODE = replace(CONFIG, host_mode=False)


def described(status: str, **state: Any) -> dict[str, Any]:
    return {
        "Id": "a" * 64,
        "Name": "/benchyard-run-7-a2",
        "Created": "2026-11-16T10:14:38.559959123Z",
        "State": {
            "Status": status,
            "StartedAt": "0001-01-01T00:00:00Z",
            "FinishedAt": "0001-01-01T00:00:00Z",
            "ExitCode": 0,
            "OOMKilled": False,
            **state,
        },
        "Config": {"Labels": {"benchyard.run": "7", "benchyard.attempt": "2", "benchyard.instance_type": "lite"}},
    }


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("created", ContainerState.CREATED),
        ("running", ContainerState.RUNNING),
        ("restarting", ContainerState.RUNNING),
        ("paused", ContainerState.PAUSED),
        ("exited", ContainerState.EXITED),
        ("removing", ContainerState.DEAD),
        ("dead", ContainerState.DEAD),
        ("something new", ContainerState.DEAD),
    ],
)
def test_states(status: str, state: ContainerState) -> None:
    assert read_container(described(status)).state is state


def test_an_exit_is_read_whole() -> None:
    facts = read_container(
        described(
            "exited",
            StartedAt="2026-11-16T10:14:39.1Z",
            FinishedAt="2026-11-16T11:14:39.123456789+01:00",
            ExitCode=137,
            OOMKilled=True,
        )
    )
    assert (facts.name, facts.run_id, facts.attempt, facts.instance_type) == ("benchyard-run-7-a2", "7", 2, "lite")
    assert facts.created_at == datetime(2026, 11, 16, 10, 14, 38, 559959, tzinfo=UTC)
    assert facts.started_at == datetime(2026, 11, 16, 10, 14, 39, 100000, tzinfo=UTC)
    assert facts.finished_at == datetime(2026, 11, 16, 10, 14, 39, 123456, tzinfo=UTC)
    assert (facts.exit_code, facts.oom_killed) == (137, True)


def test_what_runs_has_no_exit_code_though_docker_writes_zero() -> None:
    facts = read_container(described("running", StartedAt="2026-11-16T10:14:39Z"))
    assert (facts.exit_code, facts.finished_at) == (None, None)


def test_foreign_labels_are_no_error() -> None:
    strange = described("running")
    strange["Config"] = {"Labels": {"benchyard.attempt": "two"}}
    assert read_container(strange).attempt is None
    strange["Config"] = {"Labels": None}
    assert read_container(strange).run_id is None


@pytest.mark.parametrize("never", ["", None, "0001-01-01T00:00:00Z"])
def test_never(never: str | None) -> None:
    assert read_time(never) is None


CPU = {"cpu_usage": {"total_usage": 1_500_000_000}, "throttling_data": {"throttled_time": 250_000_000}}


@pytest.mark.parametrize("pages", [{"total_inactive_file": 24}, {"inactive_file": 24}], ids=["cgroup v1", "cgroup v2"])
def test_counters(pages: dict[str, int]) -> None:
    stats = read_stats(
        {"cpu_stats": CPU, "memory_stats": {"usage": 100, "limit": 256, "stats": pages}, "pids_stats": {"current": 3}}
    )
    assert stats == ContainerStats(cpu_s=1.5, memory_bytes=76, memory_limit_bytes=256, pids=3, throttled_s=0.25)


@pytest.mark.parametrize(
    "counters",
    [{}, {"cpu_stats": {"cpu_usage": {"total_usage": 0}}, "memory_stats": {}}, {"cpu_stats": CPU, "memory_stats": {}}],
)
def test_no_counters_when_it_does_not_run(counters: dict[str, Any]) -> None:
    assert read_stats(counters) is None


def network(**changes: Any) -> dict[str, Any]:
    asked = network_options(CONFIG)
    return {
        "Id": "0123456789abcdef",
        "Name": asked["name"],
        "Driver": "bridge",
        "Internal": True,
        "Options": asked["options"],
        "Labels": asked["labels"],
        "Containers": {},
        "IPAM": {"Config": [{"Subnet": "fd00::/64"}, {"Subnet": "172.30.0.0/16", "Gateway": "172.30.0.1"}]},
        **changes,
    }


CLOSED = network_options(CONTAINER_MODE)["options"]


def test_a_network_is_read() -> None:
    read = read_network(network())
    assert (read.bridge, read.gateway) == ("br-0123456789ab", "172.30.0.1")
    assert read_network(network(IPAM={"Config": [{"Subnet": "10.9.8.0/24"}]})).gateway == "10.9.8.1"
    assert read_network(network(IPAM={"Config": []})).gateway is None
    assert read_network(network(Options=CLOSED)).gateway is None
    assert read_network(network(Options={"com.docker.network.bridge.name": "yard0"})).bridge == "yard0"


@pytest.mark.parametrize(
    ("changes", "on_host", "in_container"),
    [
        pytest.param({}, True, True, id="made for host mode"),
        pytest.param({"Options": CLOSED}, False, True, id="made for container mode"),
        pytest.param({"Options": None}, False, True, id="runners could talk to each other"),
        pytest.param({"Internal": False}, False, False, id="leads outside"),
        pytest.param({"Driver": "macvlan"}, False, False, id="another driver"),
    ],
)
def test_which_networks_are_usable(changes: dict[str, Any], on_host: bool, in_container: bool) -> None:
    assert is_usable(network(**changes), CONFIG) is on_host
    assert is_usable(network(**changes), CONTAINER_MODE) is in_container


def test_only_an_empty_network_of_ours_is_replaced() -> None:
    assert is_replaceable(network(), CONFIG)
    assert not is_replaceable(network(Containers={"x": {}}), CONFIG)
    assert not is_replaceable(network(Labels={"benchyard.instance": "there"}), CONFIG)
    assert not is_replaceable(network(Labels=None), CONFIG)
    assert "docker network rm benchyard-runners" in str(refusal(CONFIG))


@pytest.mark.parametrize(
    ("info", "words"),
    [
        ({}, "this machine's kernel, read-only"),
        ({"SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"]}, "this machine's kernel with rootless,"),
        ({"DefaultRuntime": "runsc"}, "a kernel of their own (gVisor)"),
    ],
)
def test_the_isolation_sentence(info: dict[str, Any], words: str) -> None:
    sentence = isolation_sentence(info, "runners reach nothing")
    assert words in sentence
    assert sentence.endswith("; runners reach nothing.")


def test_firewall_rules_end_with_drop() -> None:
    guard = HostGuard(bridge="br-0123456789ab", gateway="172.30.0.1", port=8001)
    assert guard.chain == "BENCHYARD-0123456789ab"
    assert rules(guard.chain, guard.gateway, guard.port).splitlines() == [
        "*filter",
        ":BENCHYARD-0123456789ab - [0:0]",
        "-A BENCHYARD-0123456789ab -d 172.30.0.1/32 -p tcp -m tcp --dport 8001 -j ACCEPT",
        "-A BENCHYARD-0123456789ab -m conntrack --ctstate ESTABLISHED -j ACCEPT",
        "-A BENCHYARD-0123456789ab -j DROP",
        "COMMIT",
    ]
    assert "ACCEPT" not in closed_rules(guard.chain)
    assert len(HostGuard("a-very-long-bridge-name-indeed", "10.0.0.1", 1).chain) <= 28


def test_bridges_with_rules_of_ours_are_found_again() -> None:
    listing = """-P INPUT ACCEPT
-A INPUT -i br-cecc8030e410 -j BENCHYARD-cecc8030e410
-A INPUT -i eth0 -j ufw-before
-A INPUT -i yard0 -j BENCHYARD-yard0
"""
    assert guarded_bridges(listing) == ["br-cecc8030e410", "yard0"]
