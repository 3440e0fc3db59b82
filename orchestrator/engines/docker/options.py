"""Builds what we ask of Docker, as plain values: our request in, arguments of a create call out.

Pure: uses Docker's vocabulary but imports nothing of it. All hardening of runner containers is decided here and nowhere
else, and no text chosen by a user reaches the host configuration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from orchestrator.engines.docker import guest_images
from orchestrator.engines.docker.guest_images import Guest
from orchestrator.engines.engine import LABEL_INSTANCE, DiskLimit, EngineError, InstanceType, LaunchRequest
from orchestrator.engines.launch_rules import labels_of, owner_labels, scratch_bytes

MIB = 1024 * 1024
TMP_BYTES = 64 * MIB
LOG_BYTES = 1024 * 1024
PIDS_BASE = 32
PIDS_PER_SLOT = 70
SMALLEST_CPU = 0.01
GUEST_PIDS = 2048
GUEST_SHM_BYTES = 1024 * MIB

CAPABILITIES = ("KILL", "SETGID", "SETUID")
"""What the sandbox needs to give each program its own uid and to kill it; everything else is dropped."""

GUEST_CAPABILITIES = (*CAPABILITIES, "NET_ADMIN", "SYS_ADMIN")
"""In a user's image, the measuring process needs the last two to leave the network; it drops them before any command."""

NO_RESOLVER = "203.0.113.53"
"""An address reserved for documentation: older engines forward name queries of internal networks, and those can carry
data."""

ENVIRONMENT = {
    "HOME": "/tmp",  # noqa: S108 -- the container's own tmpfs
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}

OPT_ICC = "com.docker.network.bridge.enable_icc"
OPT_INHIBIT_IPV4 = "com.docker.network.bridge.inhibit_ipv4"


@dataclass(frozen=True)
class DockerEngineConfig:
    instance: str
    """Value of the label `benchyard.instance`, which marks what is ours."""
    owner: str | None = None
    """Value of the label `benchyard.owner`; anything with another value is not ours, whatever its instance name."""
    call_limit_s: float = 9.5
    """After this time the engine counts as unreachable."""
    socket_limit_s: float = 9
    """Limit of one request: shorter, so that the thread of a call that was given up is freed."""
    network: str = "benchyard-runners"
    base_url: str | None = None
    """Address of the engine; None means DOCKER_HOST or the default socket, never a context of the command line."""
    orchestrator_alias: str = "orchestrator"
    """The host name by which runners reach the orchestrator."""
    host_mode: bool = True
    """True: the orchestrator is a process on this machine. False: it is a container, attached to the runner network."""
    runner_port: int | None = None
    """In host mode, the only port of this machine that runners may reach. None leaves the firewall alone."""
    pull: bool = False
    """Pull the runner's image if it is missing. If off, `benchyard images build` or compose builds it."""
    command: tuple[str, ...] | None = None
    """Replaces the image's entry point (tests)."""
    guest_images: tuple[str, ...] = ()
    """Patterns of the users' images that may be started."""
    guest_pull: bool = True
    """Pull a user's image if it is missing."""
    guest_network: str | None = None
    """A network for the commands in users' images; None: no network."""


def create_options(
    request: LaunchRequest,
    config: DockerEngineConfig,
    gateway: str | None,
    guest: Guest | None = None,
    network: str | None = None,
    disk: DiskLimit = DiskLimit.MEMORY,
) -> dict[str, Any]:
    """Keyword arguments of `APIClient.create_container`; `gateway` is this machine's address on the runner network, and
    `network` the network's name if it differs from the configured one."""
    options: dict[str, Any] = {
        "name": request.name,
        "image": request.image,
        "hostname": "runner",
        "labels": labels_of(request, config.instance, config.owner),
        "environment": dict(ENVIRONMENT),
        "stdin_open": True,  # for the boot line; standard input ends after it
        "tty": False,
        "detach": False,
        "use_config_proxy": False,  # the client's proxy settings may hold a password
        "host_config": host_config(request, config, gateway, network or config.network),
    }
    if config.command is not None:
        options["entrypoint"] = list(config.command)
    if guest is not None:
        options |= {
            "image": guest.image_id or guest.image,
            "entrypoint": list(guest_images.ENTRY),
            "command": [],
            "user": "0:0",
            "working_dir": "/",
            "environment": guest_images.environment(guest),
            "healthcheck": {"test": ["NONE"]},
        }
        options["host_config"] |= guest_walls(request.instance_type, guest, disk)
        if guest.network:
            del options["host_config"]["Dns"]
    return options


def guest_walls(kind: InstanceType, guest: Guest, disk: DiskLimit) -> dict[str, Any]:
    """What differs from a runner's own container: commands write, execute what they wrote, and share memory."""
    scratch = scratch_bytes(kind, disk)
    on_disk = {"Type": "volume", "Target": "/tmp", "VolumeOptions": {"DriverConfig": quota_options(scratch or 0)}}  # noqa: S108
    in_memory = {"/tmp": f"rw,nosuid,nodev,exec,size={scratch},mode=1777"}  # noqa: S108
    return {
        "VolumesFrom": [f"{guest.kit}:ro"],
        "PidsLimit": GUEST_PIDS,
        **({"Tmpfs": {}, "Mounts": [on_disk]} if disk is DiskLimit.QUOTA else {"Tmpfs": in_memory}),
        "CapAdd": list(GUEST_CAPABILITIES),
        "IpcMode": "private",
        "ShmSize": min(GUEST_SHM_BYTES, kind.memory_bytes // 2),
    }


def quota_options(size: int) -> dict[str, Any]:
    """Options of a size-limited volume; the engine refuses it if its file system has no project quota."""
    return {"Name": "local", "Options": {"size": str(size)}}


def host_config(
    request: LaunchRequest, config: DockerEngineConfig, gateway: str | None, network: str | None = None
) -> dict[str, Any]:
    """The HostConfig of the engine's API: limits and hardening."""
    network = network or config.network
    options: dict[str, Any] = {
        "NetworkMode": network,
        "Dns": [NO_RESOLVER],
        **hardening(request.instance_type, request.sandbox_slots),
        # Two files: with a single one, the whole log is lost each time it is full.
        "LogConfig": {"Type": "json-file", "Config": {"max-size": f"{LOG_BYTES // 2048}k", "max-file": "2"}},
    }
    if config.host_mode:
        if gateway is None:
            raise EngineError(f"Network {network} has no address of this machine that runners could reach.")
        options["ExtraHosts"] = [f"{config.orchestrator_alias}:{gateway}"]
    return options


def hardening(kind: InstanceType, sandbox_slots: int) -> dict[str, Any]:
    """Limits and hardening of every container that executes generated code."""
    return {
        "Memory": kind.memory_bytes,
        "MemorySwap": kind.memory_bytes,  # memory + swap: no swap
        "NanoCpus": nano_cpus(kind.vcpu),
        "PidsLimit": PIDS_BASE + PIDS_PER_SLOT * sandbox_slots,
        "ReadonlyRootfs": True,
        "Tmpfs": {"/tmp": f"rw,nosuid,nodev,noexec,size={tmp_bytes(kind)},mode=1777"},  # noqa: S108
        "CapDrop": ["ALL"],
        "CapAdd": list(CAPABILITIES),
        "SecurityOpt": ["no-new-privileges"],
        "Privileged": False,
        "Init": True,
        "IpcMode": "none",
        "AutoRemove": False,
        "RestartPolicy": {"Name": "no"},
        "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
    }


def trial_options(name: str, image: str, command: tuple[str, ...], instance: str) -> dict[str, Any]:
    """Keyword arguments of `APIClient.create_container` to examine what a runner container offers; no network."""
    kind = InstanceType(name="trial", vcpu=1, memory_bytes=512 * MIB, disk_bytes=0)
    return {
        "name": name,
        "image": image,
        "entrypoint": list(command),
        "labels": {LABEL_INSTANCE: instance},
        "environment": dict(ENVIRONMENT),
        "use_config_proxy": False,
        "host_config": {"NetworkMode": "none", **hardening(kind, sandbox_slots=1)},
    }


def nano_cpus(vcpu: float) -> int:
    return math.ceil(max(vcpu, SMALLEST_CPU) * 1_000_000_000)


def tmp_bytes(kind: InstanceType) -> int:
    """The tmpfs counts as the container's memory, so a small container gets a small one."""
    return min(TMP_BYTES, kind.memory_bytes // 4)


def network_options(config: DockerEngineConfig, name: str | None = None) -> dict[str, Any]:
    """Keyword arguments of `APIClient.create_network`.

    Host mode: the bridge has an address of this machine, and runners cannot talk to each other. Container mode: the bridge
    has no address, so that no service of the machine is reachable; the orchestrator's container is attached.
    """
    switch = {OPT_ICC: "false"} if config.host_mode else {OPT_INHIBIT_IPV4: "true"}
    return {
        "name": name or config.network,
        "driver": "bridge",
        "internal": True,
        "check_duplicate": True,
        "options": switch,
        "labels": owner_labels(config.instance, config.owner),
    }
