"""A second machine, as far as one kernel can play it: a network namespace of its own with an engine of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import httpx

from tests.faults.service import Service

RUNNER = "benchyard-runner:latest"


def _run(*command: str, check: bool = True) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()


class SecondMachine:
    """`home` is its only neighbour: this machine, as it is seen from there."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._name = "by" + uuid.uuid4().hex[:8]
        third = int(self._name[2:4], 16)
        self.home, self.address = f"10.203.{third}.1", f"10.203.{third}.2"
        self.socket = f"unix://{directory}/docker.sock"
        self._engine: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        ours, theirs = f"{self._name}a", f"{self._name}b"
        _run("ip", "netns", "add", self._name)
        _run("ip", "link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", self._name)
        _run("ip", "addr", "add", f"{self.home}/30", "dev", ours)
        _run("ip", "link", "set", ours, "up")
        for command in (f"addr add {self.address}/30 dev {theirs}", f"link set {theirs} up", "link set lo up"):
            _run("ip", "-n", self._name, *command.split())
        self.start_engine()
        with subprocess.Popen(["docker", "save", RUNNER], stdout=subprocess.PIPE) as saving:
            load = ["docker", "--host", self.socket, "load", "--quiet"]
            subprocess.run(load, stdin=saving.stdout, check=True, capture_output=True, timeout=1800)

    def start_engine(self) -> None:
        log = (self._directory / "dockerd.log").open("ab")
        self._engine = self.popen(
            [
                "dockerd",
                *("--host", self.socket, "--data-root", f"{self._directory}/data", "--exec-root", f"{self._directory}/exec"),
                *("--pidfile", f"{self._directory}/docker.pid"),
            ],
            stdout=log,
        )
        log.close()
        until = time.monotonic() + 600
        while subprocess.run(["docker", "--host", self.socket, "info"], capture_output=True, check=False).returncode:
            tail = (self._directory / "dockerd.log").read_text()[-2000:]
            assert self._engine.poll() is None, f"the second engine ended: {tail}"
            assert time.monotonic() < until, f"the second engine does not answer: {tail}"
            time.sleep(0.2)

    def kill_engine(self) -> None:
        """As when the power goes: it ends no container properly, and is told of none that ends meanwhile."""
        assert self._engine is not None
        os.killpg(self._engine.pid, signal.SIGKILL)
        self._engine.wait()

    def stop_engine(self) -> None:
        """As an operator does: it ends its containers, then itself."""
        assert self._engine is not None
        self._engine.terminate()
        self._engine.wait(600)

    def hang_engine(self) -> None:
        """It takes connections and answers nothing."""
        assert self._engine is not None
        self._engine.send_signal(signal.SIGSTOP)

    def wake_engine(self) -> None:
        assert self._engine is not None
        self._engine.send_signal(signal.SIGCONT)

    def popen(self, command: Sequence[str], **options: object) -> subprocess.Popen[bytes]:
        """A process on that machine."""
        inside = ["nsenter", f"--net=/run/netns/{self._name}", *command]  # `ip netns exec` would hide the cgroups
        return subprocess.Popen(inside, stderr=subprocess.STDOUT, start_new_session=True, **options)  # type: ignore[call-overload, no-any-return]

    def docker(self, *arguments: str, check: bool = False) -> str:
        return _run("docker", "--host", self.socket, *arguments, check=check)

    def stop(self) -> None:
        if self._engine is not None and self._engine.poll() is None:
            self.wake_engine()
        if left := self.docker("ps", "--all", "--quiet").split():
            self.docker("rm", "--force", *left)
        if self._engine is not None and self._engine.poll() is None:
            self.kill_engine()
        _run("ip", "netns", "del", self._name, check=False)
        _run("ip", "link", "del", f"{self._name}a", check=False)
        for mount in reversed([line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]):
            if mount.startswith(str(self._directory)):
                _run("umount", "--lazy", mount, check=False)
        shutil.rmtree(self._directory, ignore_errors=True)


class ServiceThere(Service):
    """A service on that machine, beside its engine, reached over the network."""

    def __init__(self, machine: SecondMachine, data: Path, **options: Any) -> None:
        super().__init__(data, **options, host=machine.address, docker_host=machine.socket)
        self._machine = machine
        self._env["BENCHYARD_PROVIDER_OPENAI_ALLOW_PRIVATE"] = "true"  # from there, a provider here is another host
        self.url = f"http://{machine.address}:{self.port}"
        self.client.close()
        self.client = httpx.Client(base_url=self.url, headers=self.client.headers, timeout=self.client.timeout)

    def popen(self, command: list[str], env: dict[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        return self._machine.popen(command, cwd=self.root, env=env, stdout=log)

    def docker(self, *arguments: str, check: bool = True) -> str:
        return self._machine.docker(*arguments, check=check)
