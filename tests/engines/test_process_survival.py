"""The process engine when its orchestrator, its keeper or the machine's process numbers turn against it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.engines.engine import ContainerState, EngineError, EngineUnreachable
from orchestrator.engines.process.directory import ProcessBox
from orchestrator.engines.process.engine import ProcessEngine, ProcessEngineConfig
from orchestrator.engines.process.supervisor import birth_of, descendants
from tests.engines.rigs import TOKEN, ProcessRig, order, request, until, until_logged

pytestmark = pytest.mark.anyio

LAUNCH_AND_DIE = """
import asyncio, os, signal, sys
sys.path.insert(0, {root!r})
from tests.engines.rigs import ProcessRig, order, request
from pathlib import Path

async def main():
    rig = ProcessRig(Path({path!r}))
    await rig.engine.launch(request(rig, order("sleep", say="still here"), run_id="survivor"))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def lives(pid: int) -> bool:
    return birth_of(pid) is not None


def keepers_of(directory: Path) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "cmdline").read_bytes().endswith(f"\0{directory}\0".encode()) and lives(int(entry.name)):
                found.append(entry.name)
    return found


async def gone(*pids: int) -> None:
    async with asyncio.timeout(60):
        while any(lives(pid) for pid in pids):
            await asyncio.sleep(0.02)


async def test_a_program_survives_kill_9_of_its_orchestrator(process_rig: ProcessRig) -> None:
    root = Path(__file__).parents[2]
    code = LAUNCH_AND_DIE.format(root=str(root), path=str(process_rig.root))
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code], cwd=root, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    name = "benchyard-test-survivor-a1"
    assert [(facts.name, facts.state) for facts in await process_rig.engine.list()] == [(name, ContainerState.RUNNING)]
    await until_logged(process_rig.engine, name, b"still here")
    os.kill(process_rig.child(name), signal.SIGTERM)
    assert (await until(process_rig.engine, name, ContainerState.EXITED)).exit_code == 143, "the end is recorded without us"


async def test_launches_at_once_start_one_program(process_rig: ProcessRig) -> None:
    for _ in range(5):
        asked = request(process_rig, order("sleep", say="once"))
        engines = [process_rig.engine, process_rig.restarted()]
        found = await asyncio.gather(*(engine.launch(asked) for engine in engines * 4))
        assert {(facts.container_id, facts.state) for facts in found} == {(found[0].container_id, ContainerState.RUNNING)}
        await until_logged(process_rig.engine, asked.name, b"once")
        assert len(keepers_of(process_rig.root / asked.name)) == 1


async def test_everything_that_a_program_started_ends_with_it(process_rig: ProcessRig) -> None:
    asked = request(process_rig, order("family"))
    await process_rig.engine.launch(asked)
    await until_logged(process_rig.engine, asked.name, b"pids")
    child = process_rig.child(asked.name)
    family = [child, *descendants(child)]
    assert len(family) >= 3, "two of them in sessions of their own"
    await process_rig.engine.kill(asked.name)
    await gone(*family)


async def test_a_killed_keeper_takes_its_program_along(process_rig: ProcessRig) -> None:
    asked = request(process_rig, order("ignore_term"))
    await process_rig.engine.launch(asked)
    running = json.loads((process_rig.root / asked.name / "running.json").read_text())
    os.kill(running["keeper"], signal.SIGKILL)
    facts = await until(process_rig.engine, asked.name, ContainerState.EXITED)
    assert (facts.exit_code, facts.oom_killed) == (137, False)
    await gone(running["child"])
    assert (await process_rig.engine.inspect(asked.name)) == facts, "and the answer stays the same"


async def test_a_process_number_that_another_process_took_is_left_alone(process_rig: ProcessRig) -> None:
    asked = request(process_rig, order("exit", code=0))
    await process_rig.engine.launch(asked)
    await until(process_rig.engine, asked.name, ContainerState.EXITED)
    directory = process_rig.root / asked.name
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as stranger:
        running = json.loads((directory / "running.json").read_text())
        (directory / "running.json").write_text(json.dumps({**running, "child": stranger.pid, "keeper": stranger.pid}))
        (directory / "exit.json").unlink()
        facts = await process_rig.engine.inspect(asked.name)
        assert facts is not None
        assert facts.state is ContainerState.EXITED
        await process_rig.engine.kill(asked.name)
        await process_rig.engine.remove(asked.name)
        assert stranger.poll() is None
        stranger.communicate(b"\n")


async def test_the_program_gets_no_secrets_and_leaves_none(process_rig: ProcessRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-key")
    asked = request(process_rig, order("sleep"))
    await process_rig.engine.launch(asked)
    await until_logged(process_rig.engine, asked.name, b"ready")
    child = process_rig.child(asked.name)
    keeper = json.loads((process_rig.root / asked.name / "running.json").read_text())["keeper"]
    for pid in (child, keeper):
        seen = Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
        assert b"canary-key" not in seen
        assert TOKEN.encode() not in seen
    for path in (process_rig.root / asked.name).rglob("*"):
        if path.is_file():
            assert TOKEN.encode() not in path.read_bytes(), path
            assert b"canary-key" not in path.read_bytes(), path


async def test_a_program_that_cannot_start_says_why(process_rig: ProcessRig) -> None:
    config = ProcessEngineConfig(instance="test", root=process_rig.root, command=("/no/such/program",))
    engine = ProcessEngine(config)
    asked = request(process_rig, order("sleep"))
    await engine.launch(asked)
    assert (await until(engine, asked.name, ContainerState.EXITED)).exit_code == 127
    assert b"cannot start" in await engine.logs(asked.name, tail_bytes=1000)
    await engine.close()


@pytest.mark.parametrize("name", ["", "..", ".new-x", "a/b", "x" * 300])
async def test_names_that_lead_elsewhere_are_refused(process_rig: ProcessRig, name: str) -> None:
    with pytest.raises(EngineError):
        await process_rig.engine.remove(name)


async def test_a_directory_that_cannot_be_used_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    engine = ProcessEngine(ProcessEngineConfig(instance="test", root=tmp_path / "file" / "below"))
    with pytest.raises(EngineUnreachable):
        await engine.prepare()
    await engine.close()


async def test_half_made_and_half_removed_directories_are_not_shown(process_rig: ProcessRig) -> None:
    await process_rig.engine.prepare()
    (process_rig.root / ".new-1").mkdir()
    (process_rig.root / ".gone-1").mkdir()
    (process_rig.root / "stranger").mkdir()
    assert await process_rig.engine.list() == []
    assert ProcessBox(process_rig.root / "stranger").facts() is None
