"""Docker that is not there, hangs, talks nonsense or dies in the middle of a launch: unreachable is not dead."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.engines.docker.options import DockerEngineConfig
from orchestrator.engines.engine import ContainerState, EngineError, EngineUnreachable
from tests.engines.cutting_proxy import CuttingProxy, served
from tests.engines.rigs import DockerRig, FakeRig, order, request

pytestmark = pytest.mark.anyio

NAME = "benchyard-test-x-a1"
NO_LINE = 1
"""The exit code of a probe whose standard input ends without a line."""
CALLS: dict[str, Callable[[DockerEngine], Awaitable[Any]]] = {
    "prepare": lambda engine: engine.prepare(),
    "info": lambda engine: engine.info(),
    "launch": lambda engine: engine.launch(request(FakeRig(), order("sleep"))),
    "list": lambda engine: engine.list(),
    "inspect": lambda engine: engine.inspect(NAME),
    "stop": lambda engine: engine.stop(NAME, grace_s=0.5),
    "kill": lambda engine: engine.kill(NAME),
    "remove": lambda engine: engine.remove(NAME),
    "logs": lambda engine: engine.logs(NAME, tail_bytes=10),
    "stats": lambda engine: engine.stats(NAME),
}


@contextlib.asynccontextmanager
async def engine_at(base_url: str, **limits: float) -> AsyncIterator[DockerEngine]:
    engine = DockerEngine(DockerEngineConfig(instance="x", base_url=base_url, **limits))  # type: ignore[arg-type]
    try:
        yield engine
    finally:
        await engine.close()


@contextlib.asynccontextmanager
async def answering(path: Path, answer: bytes | None) -> AsyncIterator[str]:
    """A socket that gives every request the same answer, or none at all."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65536):
            if answer is not None:
                writer.write(answer)
                await writer.drain()

    async with served(path, serve) as base_url:
        yield base_url


def http(status: str, body: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


async def outcome(call: Callable[[DockerEngine], Awaitable[Any]], engine: DockerEngine) -> str:
    try:
        return repr(await call(engine))
    except EngineError as error:
        return type(error).__name__


def test_limits_are_within_the_specification() -> None:
    config = DockerEngineConfig(instance="x")
    assert config.socket_limit_s < config.call_limit_s < 10


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("base_url", ["unix:///nonexistent/docker.sock", "tcp://127.0.0.1:1"], ids=["no socket", "refused"])
async def test_no_engine(call: Callable[[DockerEngine], Awaitable[Any]], base_url: str) -> None:
    async with engine_at(base_url) as engine:
        with pytest.raises(EngineUnreachable, match=r"No Docker engine answers at .* Start Docker, or set DOCKER_HOST"):
            await call(engine)


async def test_a_hung_engine_is_given_up_in_time(tmp_path: Path) -> None:
    async with (
        answering(tmp_path / "s", None) as base_url,
        engine_at(base_url, call_limit_s=0.6, socket_limit_s=1) as engine,
    ):
        async with asyncio.timeout(300):
            ends = await asyncio.gather(*(outcome(call, engine) for call in CALLS.values()))
        assert set(ends) == {"EngineUnreachable"}
        await asyncio.sleep(1.2)  # the threads come back


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(http("503 Service Unavailable", '{"message": "shutting down"}'), "EngineUnreachable", id="503"),
        pytest.param(http("502 Bad Gateway", "<html>"), "EngineUnreachable", id="502 of a proxy"),
        pytest.param(http("200 OK", "{"), "EngineUnreachable", id="half an answer"),
        pytest.param(b"nonsense\r\n\r\n", "EngineUnreachable", id="no HTTP"),
    ],
)
async def test_nonsense_proves_nothing(tmp_path: Path, answer: bytes, expected: str) -> None:
    async with answering(tmp_path / "s", answer) as base_url, engine_at(base_url) as engine:
        for name in ("inspect", "list", "kill"):
            assert await outcome(CALLS[name], engine) == expected


async def test_a_watch_of_no_engine_ends_quietly() -> None:
    async with engine_at("unix:///nonexistent/docker.sock") as engine:
        assert [name async for name in engine.watch()] == []


@pytest.mark.engine
@pytest.mark.parametrize("answer_lost", [False, True], ids=["request lost", "answer lost"])
@pytest.mark.parametrize("cut_at", range(1, 9))
async def test_an_engine_that_dies_at_any_request_of_a_launch(
    docker_rig: DockerRig, tmp_path: Path, cut_at: int, answer_lost: bool
) -> None:
    """Whatever breaks, a healthy engine afterwards sees no container or one, and the same launch ends with one that runs.

    Only where the answer to the start is lost may it have ended: its line never came, and what hears no line goes by itself.
    """
    asked = request(docker_rig, order("sleep"))
    await docker_rig.engine.prepare()
    proxy = CuttingProxy(tmp_path / "s", cut_at, answer_lost)
    async with proxy.serving() as base_url:
        dying = DockerEngine(replace(docker_rig.config, base_url=base_url, runner_port=None))
        try:
            facts = await dying.launch(asked)
            assert (cut_at, facts.state) == (8, ContainerState.RUNNING), proxy.requests
        except EngineUnreachable:
            assert len(proxy.requests) >= cut_at
        finally:
            await dying.close()
    left = await docker_rig.engine.list()
    assert [one.name for one in left] in ([], [asked.name])
    after = await docker_rig.engine.launch(asked)
    unheard = (cut_at, answer_lost) == (6, True) and after.exit_code == NO_LINE
    assert after.state is (ContainerState.EXITED if unheard else ContainerState.RUNNING)
    assert [one.container_id for one in await docker_rig.engine.list()] == [after.container_id]
    assert {one.container_id for one in left} <= {after.container_id}


@pytest.mark.engine
async def test_an_engine_that_comes_back_is_used_again(docker_rig: DockerRig, tmp_path: Path) -> None:
    path = tmp_path / "s"
    asked = request(docker_rig, order("sleep"))
    engine = DockerEngine(replace(docker_rig.config, base_url=f"unix://{path}", runner_port=None))
    try:
        with pytest.raises(EngineUnreachable):
            await engine.launch(asked)
        async with CuttingProxy(path, 10_000, False).serving():
            await engine.launch(asked)
            watching = asyncio.ensure_future(anext(engine.watch(), None))
            await asyncio.sleep(0.3)
        assert await asyncio.wait_for(watching, 300) is None, "the watch ends with the engine"
        with pytest.raises(EngineUnreachable):
            await engine.inspect(asked.name)
        path.unlink(missing_ok=True)
        async with CuttingProxy(path, 10_000, False).serving():
            facts = await engine.inspect(asked.name)
            assert facts is not None
            assert facts.state is ContainerState.RUNNING
            await engine.remove(asked.name)
    finally:
        await engine.close()
