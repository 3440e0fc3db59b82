"""`scripts/kubernetes-here` leaves nothing behind, whatever it was interrupted at. It has a cluster to itself."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.service import wait_for
from tests.kubernetes.cluster import Cluster, here

pytestmark = [pytest.mark.kubernetes, pytest.mark.own_nodes, pytest.mark.slow]

NUMBER = 9
STATE = Path(f"/var/tmp/benchyard-kubernetes-{NUMBER}")
SYSCTLS = [f"/proc/sys/{name}" for name in ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops")]

FOLDERS = ("/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/var/log/containers", "/run/netns", "/run/runc")
"""What kubelets and network plugins use on an ordinary machine."""


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def traces() -> dict[str, list[str]]:
    """Everything on this machine that bears the cluster's name."""
    names = (f"bykube{NUMBER}", f"benchyard-kubernetes-{NUMBER}", f"10.99.{NUMBER}.", f"10.24{NUMBER}.")
    seen = {
        "links": run("ip", "-o", "link"),
        "routes": run("ip", "route"),
        "rules": run("iptables", "-S"),
        "namespaces": run("ip", "netns", "list"),
        "mounts": Path("/proc/mounts").read_text(),
        "groups": run("find", "/sys/fs/cgroup", "-maxdepth", "2", "-name", f"benchyard-kubernetes-{NUMBER}-*"),
        "files": "\n".join(str(path) for folder in ("/run", "/tmp", "/var/tmp") for path in Path(folder).iterdir()),
        "processes": "\n".join(commands()),
    }
    return {
        what: found for what, text in seen.items() if (found := [line for line in text.splitlines() if has(line, names)])
    }


def has(line: str, names: tuple[str, ...]) -> bool:
    return any(name in line for name in names)


def commands() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield f"{path.parent.name} {path.read_bytes().replace(bytes(1), b' ').decode(errors='replace')}"
        except OSError:
            continue


def pid(name: str) -> int:
    return int((STATE / "pids" / name).read_text().split()[0])


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def nothing_before() -> Iterator[None]:
    here("down", number=NUMBER)
    assert traces() == {}
    yield
    here("down", number=NUMBER)


def test_nothing_is_left(nothing_before: None) -> None:
    sysctls = [Path(path).read_text() for path in SYSCTLS]
    folders = [Path(path).exists() for path in FOLDERS]
    interrupted = subprocess.Popen(
        ["scripts/kubernetes-here", "up"], env={**os.environ, "BENCHYARD_KUBERNETES_CLUSTER": str(NUMBER)}
    )
    wait_for((STATE / "pids/apiserver").exists, 60, "it is half-way")
    interrupted.send_signal(signal.SIGKILL)
    interrupted.wait()
    assert traces().keys() >= {"links", "processes", "files"}

    cluster = Cluster(Path(here("up", number=NUMBER).splitlines()[-1]), number=NUMBER)
    assert cluster.ready_nodes() == {"node-a", "node-b"}
    assert here("up", number=NUMBER) == str(cluster.kubeconfig), "up again changes nothing"

    survivor, victims = pid("node-a-kubelet"), [pid("etcd"), pid("node-b-containerd")]
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    wait_for(lambda: not any(alive(victim) for victim in victims), 60, "they are dead")
    assert here("up", number=NUMBER) == str(cluster.kubeconfig), "what was damaged is replaced"
    assert cluster.ready_nodes() == {"node-a", "node-b"}
    assert pid("node-a-kubelet") != survivor

    here("down", number=NUMBER)
    assert traces() == {}
    assert [Path(path).read_text() for path in SYSCTLS] == sysctls, "the host's own settings"
    assert [Path(path).exists() for path in FOLDERS] == folders
    here("down", number=NUMBER)
