"""Groups of their own for executions: found, limited by the kernel, used where they can be made, removed afterwards."""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Iterator
from glob import glob
from pathlib import Path

import pytest

from runner.sandbox.executor import Executor
from runner.sandbox.kernel.cgroup import (
    INTERPRETER_BYTES,
    NEEDED,
    ExecutionGroup,
    NoCgroupError,
    SandboxGroup,
    _delegate,
    find,
)
from runner.sandbox.limits import MIB, Limits
from tests.sandbox.test_executor import _descendants
from tests.uids import own_uid_base

V2 = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"
V1 = """\
31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
32 30 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
"""
HYBRID = V1 + "33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"


@pytest.mark.parametrize(
    ("mounts", "own", "version", "memory"),
    [
        (V2, "0::/user.slice/run.scope", 2, "/sys/fs/cgroup/user.slice/run.scope"),
        (V2, "0::/", 2, "/sys/fs/cgroup"),
        (V2, "0::/user.slice/run.scope/benchyard-own", 2, "/sys/fs/cgroup/user.slice/run.scope"),
        (V2, "0::/benchyard-own", 2, "/sys/fs/cgroup"),
        (V1, "4:memory:/docker/abc\n8:pids:/docker/abc\n0::/", 1, "/sys/fs/cgroup/memory/docker/abc"),
        (HYBRID, "4:memory:/a\n8:pids:/\n0::/", 1, "/sys/fs/cgroup/memory/a"),
        (
            "31 30 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
            "32 30 0:28 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n",
            "4:memory:/docker/abc\n8:pids:/docker/abc",
            1,
            "/sys/fs/cgroup/memory",
        ),
    ],
    ids=["v2", "v2-root", "v2-moved-aside", "v2-container-moved-aside", "v1", "hybrid", "v1-container"],
)
def test_own_group_is_found(mounts: str, own: str, version: int, memory: str) -> None:
    place = find(mounts, own)
    assert (place.version, place.folders["memory"]) == (version, memory)


@pytest.mark.parametrize("mounts", ["", V1.splitlines()[0]], ids=["none", "memory-only"])
def test_missing_controllers_are_named(mounts: str) -> None:
    with pytest.raises(NoCgroupError, match="memory and pids"):
        find(mounts, "4:memory:/\n8:pids:/")


@pytest.fixture
def sandbox_group() -> Iterator[SandboxGroup | NoCgroupError]:
    """Or why none can be made on this machine, as the sandbox must then say."""
    try:
        made = SandboxGroup.make()
    except NoCgroupError as why:
        yield why
    else:
        yield made
        made.remove()
        assert _own_groups() == []


def test_the_kernel_holds_the_limits(sandbox_group: SandboxGroup | NoCgroupError) -> None:
    if isinstance(sandbox_group, NoCgroupError):
        assert "cgroup" in str(sandbox_group) or "controllers" in str(sandbox_group)
        return
    group = sandbox_group.execution_group()
    group.limit(8 * MIB, 3)
    hog = os.fork()
    if hog == 0:
        group.join()
        bytearray(b"x" * (200 * MIB))
        os._exit(0)
    _, status = os.waitpid(hog, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert group.ran_out_of_memory()
    assert not group.ran_out_of_memory()
    forker = os.fork()
    if forker == 0:
        group.join()
        born = 0
        try:
            for _ in range(10):
                if os.fork() == 0:
                    signal.pause()
                born += 1
        except OSError:
            os._exit(born)
        os._exit(99)
    _, status = os.waitpid(forker, 0)
    assert os.waitstatus_to_exitcode(status) == 2
    assert len(group.members()) == 2


def test_every_sandbox_group_is_made_at_the_same_place(sandbox_group: SandboxGroup | NoCgroupError) -> None:
    first = Path("/proc/self/cgroup").read_text()
    if not isinstance(sandbox_group, NoCgroupError):
        sandbox_group.remove()
        SandboxGroup.make().remove()
    assert Path("/proc/self/cgroup").read_text() == first


def _own_groups() -> list[str]:
    place = find(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
    return [entry for folder in place.distinct for entry in os.listdir(folder) if entry == f"benchyard-{os.getpid()}"]


def test_executions_run_in_a_group_of_their_own(sandbox_group: SandboxGroup | NoCgroupError) -> None:
    groups: list[str] = []

    async def main() -> None:
        async with Executor.open(1, own_uid_base()) as executor:
            level = executor.level
            assert bool(level.cgroup) != isinstance(sandbox_group, NoCgroupError)
            assert (level.cgroup or level.no_cgroup) in level.sentence
            limits = Limits(cpu_s=2, wall_s=60, memory_bytes=64 * MIB)
            job = asyncio.create_task(executor.run_stdin("import time; time.sleep(1)", [b""], limits, lambda *_: True))
            while not groups and not job.done():
                await asyncio.sleep(0.05)
                for pid in _descendants(os.getpid()):
                    with contextlib.suppress(OSError):  # it ended meanwhile
                        groups.extend(re.findall(r"\S*/benchyard-\d+/\d+", Path(f"/proc/{pid}/cgroup").read_text()))
            await job

    asyncio.run(main())
    assert bool(groups) != isinstance(sandbox_group, NoCgroupError)
    assert [group for group in groups if glob(f"/sys/fs/cgroup/*{group}") or os.path.exists(f"/sys/fs/cgroup{group}")] == []


FILES_OF_A_GROUP = {
    "cgroup.procs": "",
    "cgroup.subtree_control": "",
    "cgroup.controllers": "memory pids",
    "cgroup.type": "domain",
    "memory.max": "",
    "memory.swap.max": "",
    "memory.oom.group": "",
    "memory.current": "4096",
    "memory.events": "low 0\nhigh 0\nmax 3\noom 2\noom_kill 0\noom_group_kill 0\n",
    "pids.max": "",
}


@pytest.fixture
def tree_of_version_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders that fill themselves with a group's files, as the kernel does; nothing is limited."""
    make = os.mkdir

    def make_group(path: str, mode: int = 0o777) -> None:
        make(path, mode)
        for name, content in FILES_OF_A_GROUP.items():
            Path(path, name).write_text(content)

    monkeypatch.setattr("runner.sandbox.kernel.cgroup.os.mkdir", make_group)
    own = tmp_path / "run.scope"
    make_group(str(own))
    return own


def test_version_2_moves_the_runner_aside_before_it_hands_out_controllers(tree_of_version_2: Path) -> None:
    own = tree_of_version_2
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n")
    _delegate(str(own))
    assert (own / "benchyard-own/cgroup.procs").read_text() == str(os.getpid())
    assert (own / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_version_2_leaves_groups_alone_that_others_are_in(tree_of_version_2: Path) -> None:
    (tree_of_version_2 / "cgroup.procs").write_text(f"{os.getpid()}\n1\n")
    with pytest.raises(NoCgroupError, match="other processes"):
        _delegate(str(tree_of_version_2))
    assert (tree_of_version_2 / "cgroup.subtree_control").read_text() == ""


def test_version_2_limits_and_counts(tree_of_version_2: Path) -> None:
    folder = tree_of_version_2 / "group"
    group = ExecutionGroup(2, dict.fromkeys(NEEDED, str(folder)))
    group.limit(64 * MIB, 5)
    group.join()
    assert (folder / "memory.max").read_text() == str(64 * MIB + INTERPRETER_BYTES)
    written = {name: (folder / name).read_text() for name in ("pids.max", "memory.swap.max", "memory.oom.group")}
    assert written == {"pids.max": "5", "memory.swap.max": "0", "memory.oom.group": "1"}
    assert (folder / "cgroup.procs").read_text() == "0"
    assert group.memory_bytes() == 4096
    assert not group.ran_out_of_memory()
    (folder / "memory.events").write_text(FILES_OF_A_GROUP["memory.events"].replace("oom_kill 0", "oom_kill 1"))
    assert group.ran_out_of_memory()
    assert not group.ran_out_of_memory()
