"""Runs the published programs through the sandbox and prints what happened, one JSON object per line.

It needs nothing but the standard library, so that it runs as it is inside the runner container, as root and as an
ordinary user: `PYTHONPATH=. python3 -m tests.sandbox.suite [--no-uids] [--no-landlock] [--become UID]`. On a machine whose
processor is emulated, `--patience 10` multiplies all time limits.
"""

import argparse
import asyncio
import json
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from runner.sandbox.executor import Executor
from runner.sandbox.kernel.landlock import FOR_WRITING
from runner.sandbox.limits import Allow, Limits
from runner.sandbox.outcome import Ending, Execution
from runner.sandbox.processes.jail import drop_privileges
from runner.sandbox.protocol.values import same
from tests.sandbox.cheats import CHEATS
from tests.sandbox.hostile import HOSTILE
from tests.sandbox.ordinary import ORDINARY
from tests.sandbox.profiles import HOSTILE_PROFILES, ORDINARY_PROFILES, STOPPED_WALL_S, STOPS_ITSELF, permitted
from tests.sandbox.programs import ROOMY_LIMITS, SHORT_LIMITS, SUITE_LIMITS, Cheat, Hostile, Ordinary
from tests.sandbox.traces import objects, processes

GREEDY = ("thread_bomb",)
"""Run before all others: where programs share a user id, they share the threads that it may have."""
NUMBERS = [7, 5, 9]
LISTS = [[3, 1, 2], [5, 4], [9, 8, 7, 6]]
CHECK = """
def check(candidate):
    assert candidate(1, 2) == 3
    assert candidate(-1, 1) == 0 and abs(candidate(0.5, 0.25) - 0.75) < 1e-9
    assert isinstance(candidate(2, 2), int)
"""
HONEST = {
    "stdin": "print(2 * int(input()))",
    "calls": "def solve(a): return sorted(a)",
    "check": "def add(a, b): return a + b",
}


@dataclass
class Canaries:
    """Things worth stealing or reaching, and a note of who did."""

    folder: Path
    port: int
    servers: list[socket.socket]

    @classmethod
    def start(cls) -> "Canaries":
        os.environ["BENCHYARD_CANARY"] = "canary-token-0123456789"
        folder = Path(tempfile.mkdtemp(prefix="canaries-"))
        folder.chmod(0o755)
        (folder / "answers.json").write_text("CANARY answers")
        tcp = socket.create_server(("127.0.0.1", 0))
        path, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        path.bind(str(folder / "canary.sock"))
        (folder / "canary.sock").chmod(0o777)
        abstract.bind(f"\0benchyard-canary-{tcp.getsockname()[1]}")
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", tcp.getsockname()[1]))
        servers = [tcp, path, abstract, udp]
        for server in servers[1:3]:
            server.listen()
        for server in servers:
            server.setblocking(False)
        return cls(folder, tcp.getsockname()[1], servers)

    def fill_in(self, source: str) -> str:
        for name, value in {
            "RUNNER_PID": os.getpid(),
            "PORT": self.port,
            "SECRET_FILE": self.folder / "answers.json",
            "SECRET_NAME": "answers.json",
            "SECRET_DIR": self.folder,
        }.items():
            source = source.replace("{{" + name + "}}", str(value))
        return source

    def visitors(self) -> int:
        count = 0
        for server in self.servers:
            try:
                if server.type == socket.SOCK_STREAM:
                    server.accept()[0].close()
                else:
                    server.recv(1)
                count += 1
            except BlockingIOError:
                pass
        return count

    def remove(self) -> None:
        for server in self.servers:
            server.close()
        shutil.rmtree(self.folder, ignore_errors=True)  # planted as root, removed as another user: stays in a container


def show(kind: str, name: str, passed: bool, execution: Execution, why: str = "") -> dict[str, Any]:
    seen = {k: v for k, v in asdict(execution).items() if k in ("exit_code", "signal", "detail")}
    return {
        "kind": kind,
        "name": name,
        "passed": passed,
        "ending": execution.ending.value,
        "why": why,
        "stdout": execution.stdout[:200].decode(errors="replace"),
        "stderr": execution.stderr_tail[-300:],
        "cpu_s": round(execution.usage.cpu_s, 3),
        "wall_s": round(execution.usage.wall_s, 3),
        "peak_mib": execution.usage.peak_bytes >> 20,
        **seen,
    }


class Suite:
    def __init__(self, executor: Executor, canaries: Canaries, allow: Allow, patience: float) -> None:
        self.executor, self.canaries, self.allow, self.patience = executor, canaries, allow, patience
        self.can_open = executor.level.seccomp != "no-open"
        self.numpy = find_spec("numpy") is not None

    def patient(self, limits: Limits) -> Limits:
        return replace(limits, cpu_s=limits.cpu_s * self.patience, wall_s=limits.wall_s * self.patience)

    async def hostile(self, item: Hostile) -> dict[str, Any]:
        source = self.canaries.fill_in(item.source)
        short = "time_limit" in item.must
        limits = replace(SHORT_LIMITS if short else self.patient(SUITE_LIMITS), allow=self.allow)
        if item.name in STOPS_ITSELF and permitted(item.name, self.allow):
            limits = replace(limits, wall_s=STOPPED_WALL_S * self.patience)
        (execution,) = await self.executor.run_stdin(source, [b""], limits, lambda *_: False)
        allowed = item.must.split()
        if not self.can_open and "finished" in allowed:
            allowed.append("crashed")  # an import that was not foreseen fails at this level
        breached = b"BREACH" in execution.stdout
        if permitted(item.name, self.allow):
            breached, allowed = False, [ending.value for ending in Ending if ending is not Ending.sandbox_failed]
        why = "breached" if breached else "" if execution.ending.value in allowed else f"must be {item.must}"
        return show("hostile", item.name, not why, execution, why)

    async def cheat(self, item: Cheat) -> dict[str, Any]:
        execution, points = await self.points(item.mode, item.program)
        failed = execution.ending.value == "sandbox_failed"
        why = "it scored" if points else "it was taken for a failure of the sandbox" if failed else ""
        return show("cheat", item.name, not why, execution, why)

    async def points(self, mode: str, program: str, limits: Limits = SHORT_LIMITS) -> tuple[Execution, bool]:
        limits = replace(self.patient(limits), allow=self.allow)
        if mode == "check":
            execution = await self.executor.run_check(program, CHECK, "add", limits)
            return execution, execution.passed

        def right(index: int, execution: Execution) -> bool:
            if execution.ending.value != "finished":
                return False
            if mode == "calls":
                return same(sorted(LISTS[index]), execution.value)
            return execution.stdout.split() == [str(2 * NUMBERS[index]).encode()]

        if mode == "calls":
            done = await self.executor.run_calls(program, "solve", [[one] for one in LISTS], limits, right)
        else:
            done = await self.executor.run_stdin(program, [b"%d\n" % n for n in NUMBERS], limits, right)
        return done[-1], len(done) == 3 and all(right(index, one) for index, one in enumerate(done))

    async def ordinary(self, item: Ordinary) -> dict[str, Any] | None:
        if (item.numpy and not self.numpy) or (item.needs_open and not self.can_open):
            return None
        if item.needs_writing and self.executor.level.landlock < FOR_WRITING:
            return None
        given, expected = (part.encode() if isinstance(part, str) else part for part in (item.given, item.expected))

        def right(_: int, execution: Execution) -> bool:
            return execution.ending.value == "finished" and execution.stdout == expected

        done = await self.executor.run_stdin(item.program, [given, given], self.patient(item.limits), right)
        good = len(done) == 2 and right(1, done[1])
        return show("ordinary", item.name, good, done[-1], "" if good else f"expected {expected[:60]!r}")

    async def honest(self, mode: str) -> dict[str, Any]:
        execution, points = await self.points(mode, HONEST[mode], ROOMY_LIMITS)
        return show("honest", mode, points, execution, "" if points else "an honest program must score")


async def none_left(users: Iterable[int], within_s: float = 60) -> bool:
    """The last program was told to end when its result was there; it may take a moment."""
    end = time.monotonic() + within_s
    while processes(users):
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.05)
    return True


async def run(arguments: argparse.Namespace) -> int:
    canaries = Canaries.start()
    base = arguments.uid_base
    bad = 0

    def tell(line: dict[str, Any]) -> None:
        nonlocal bad
        bad += not line["passed"]
        sys.stdout.write(json.dumps(line) + "\n")

    fds = len(os.listdir("/proc/self/fd"))
    options = {"use_uids": not arguments.no_uids, "use_landlock": not arguments.no_landlock}
    async with Executor.open(arguments.slots, base, **options) as executor:
        if arguments.drop:
            drop_privileges(arguments.drop)
        before = objects([*range(base, base + 2 * arguments.slots), os.getuid()])
        suite = Suite(executor, canaries, arguments.allow, arguments.patience)
        tell({"kind": "level", "name": executor.level.name, "passed": True, "sentence": executor.level.sentence})
        profiles = arguments.allow == Allow.PROCESSES | Allow.FILES
        chosen = [item for item in HOSTILE if not arguments.only or arguments.only in item.name]
        for item in chosen:
            if item.name in GREEDY and (line := await suite.hostile(item)) is not None:
                tell(line)
        jobs = [
            *(suite.hostile(item) for item in (HOSTILE_PROFILES if profiles else []) * 2),
            *(suite.ordinary(item) for item in (ORDINARY_PROFILES if profiles else [])),
            *(suite.hostile(item) for item in chosen if item.name not in GREEDY),
            *(suite.cheat(item) for item in CHEATS if not arguments.only or arguments.only in item.name),
            *(suite.ordinary(item) for item in ORDINARY if not arguments.only or arguments.only in item.name),
            *(suite.honest(mode) for mode in HONEST),
        ]
        for line in await asyncio.gather(*jobs):
            if line is not None:
                tell(line)
        programs, pool = range(base, base + arguments.slots), range(base, base + 2 * arguments.slots)
        users = pool if executor.level.uid else [os.getuid()]
        left = {
            thing for thing in objects(users) - before if not thing.startswith(f"{tempfile.gettempdir()}/benchyard-work-")
        }
        gone = not executor.level.uid or await none_left(programs)
        visitors, (last,) = canaries.visitors(), await executor.run_stdin("print(1)", [b""], ROOMY_LIMITS, lambda *_: True)
        facts = {
            "nobody reached a canary": visitors == 0,
            "no process is left": gone,
            "no file, shared memory, semaphore or queue is left": not left,
            "descriptors came back": len(os.listdir("/proc/self/fd")) <= fds + 16 * arguments.slots,
            "the sandbox still works": last.stdout == b"1\n",
        }
        for name, good in facts.items():
            tell({"kind": "aftermath", "name": name, "passed": good, "objects": sorted(left)})
    canaries.remove()
    folders = {thing for thing in objects(pool) if "benchyard-work-" in thing}
    tell({"kind": "aftermath", "name": "working folders are gone", "passed": not folders, "objects": sorted(folders)})
    return bad


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--uid-base", type=int, default=58_100)
    parser.add_argument("--no-uids", action="store_true")
    parser.add_argument("--no-landlock", action="store_true")
    parser.add_argument("--drop", type=int, default=0, help="user id that the runner takes on once the sandbox is open")
    parser.add_argument("--become", type=int, default=0, help="be that user from the start")
    parser.add_argument("--only", default="")
    parser.add_argument("--allow", type=lambda text: Allow(int(text)), default=Allow.NOTHING, help="1 processes, 2 files")
    parser.add_argument("--patience", type=float, default=1.0, help="how many times the usual time limits")
    arguments = parser.parse_args()
    if arguments.become:
        drop_privileges(arguments.become)
    sys.exit(min(asyncio.run(run(arguments)), 100))


if __name__ == "__main__":
    main()
