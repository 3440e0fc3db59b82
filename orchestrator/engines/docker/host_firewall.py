"""Keeps runners away from this machine's own services if the orchestrator runs on the host.

The bridge of an internal network has an address of the machine, through which a runner could reach anything that listens on
all addresses. One chain of rules per bridge allows only the orchestrator's runner port. This needs root and iptables;
without them `put` returns False, and the caller reports it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 4
PREFIX = "BENCHYARD-"


@dataclass(frozen=True)
class HostGuard:
    bridge: str
    gateway: str
    port: int

    @property
    def chain(self) -> str:
        return chain_of(self.bridge)

    def put(self) -> bool:
        """Idempotent. True if the rules are in place. Also removes the rules of bridges that no longer exist."""
        if not possible():
            return False
        sweep()
        stands = self._put("iptables", rules(self.chain, self.gateway, self.port))
        self._put("ip6tables", closed_rules(self.chain))  # without IPv6 in the kernel there is nothing to guard
        return stands

    def lift(self) -> None:
        lift(self.bridge)

    def _put(self, tool: str, text: str) -> bool:
        if not _run([f"{tool}-restore", "-w", "2", "--noflush"], text):
            return False
        return _run([tool, "-w", "2", "-C", "INPUT", *self._jump]) or _run(
            [tool, "-w", "2", "-I", "INPUT", "1", *self._jump]
        )

    @property
    def _jump(self) -> tuple[str, ...]:
        return jump(self.bridge)


def chain_of(bridge: str) -> str:
    return f"{PREFIX}{bridge.removeprefix('br-')}"[:28]


def jump(bridge: str) -> tuple[str, ...]:
    return ("-i", bridge, "-j", chain_of(bridge))


def lift(bridge: str) -> None:
    """Remove all our rules for this bridge. Idempotent."""
    if not possible():
        return
    for tool in ("iptables", "ip6tables"):
        while _run([tool, "-w", "2", "-D", "INPUT", *jump(bridge)]):
            pass
        _run([tool, "-w", "2", "-F", chain_of(bridge)])
        _run([tool, "-w", "2", "-X", chain_of(bridge)])


def sweep() -> None:
    """Remove the rules of bridges that no longer exist, such as those of networks removed by hand."""
    for bridge in guarded_bridges(_output(["iptables", "-w", "2", "-S", "INPUT"])):
        if not Path("/sys/class/net", bridge).exists():
            lift(bridge)


def guarded_bridges(listing: str) -> list[str]:
    """From the output of `iptables -S INPUT`."""
    return re.findall(rf"^-A INPUT -i (\S+) -j {PREFIX}\S+$", listing, re.MULTILINE)


def possible() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("iptables-restore") is not None


def rules(chain: str, gateway: str, port: int) -> str:
    """Input for iptables-restore. Naming the chain empties it, and everything is applied at once."""
    return "\n".join(
        (
            "*filter",
            f":{chain} - [0:0]",
            f"-A {chain} -d {gateway}/32 -p tcp -m tcp --dport {port} -j ACCEPT",
            f"-A {chain} -m conntrack --ctstate ESTABLISHED -j ACCEPT",
            f"-A {chain} -j DROP",
            "COMMIT",
            "",
        )
    )


def closed_rules(chain: str) -> str:
    return f"*filter\n:{chain} - [0:0]\n-A {chain} -j DROP\nCOMMIT\n"


def _run(command: list[str], text: str = "") -> bool:
    done = _done(command, text)
    return done is not None and done.returncode == 0


def _output(command: list[str]) -> str:
    done = _done(command)
    return "" if done is None else done.stdout.decode(errors="replace")


def _done(command: list[str], text: str = "") -> subprocess.CompletedProcess[bytes] | None:
    try:
        return subprocess.run(command, input=text.encode(), capture_output=True, timeout=LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
