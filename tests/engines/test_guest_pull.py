"""An allowed image that is not on the engine is pulled, once; what cannot be had or is not allowed is said."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from orchestrator.engines.bounded_threads import BoundedThreads
from orchestrator.engines.docker.api import DockerApi
from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.engines.docker.options import DockerEngineConfig
from orchestrator.engines.docker.pull import GuestPulls
from orchestrator.engines.engine import EngineError, ImageMissing
from tests.engines.rigs import DockerRig, order, request
from tests.engines.small_registry import SmallRegistry, small_registry
from tests.faults.service import docker

pytestmark = [pytest.mark.anyio, pytest.mark.engine]


@pytest.fixture
def registry() -> Iterator[SmallRegistry]:
    with small_registry("1", mark=f"{os.getpid()}-{os.urandom(4).hex()}") as found:
        yield found
        docker("image", "rm", "--force", found.image, check=False)


@pytest.fixture
async def pulls() -> AsyncIterator[GuestPulls]:
    api, threads = DockerApi(None, connections=4), BoundedThreads(4, "test")
    found = GuestPulls(api, threads)
    yield found
    found.close()
    threads.close()
    api.close()


async def test_it_is_pulled_once_for_all_who_wait(pulls: GuestPulls, registry: SmallRegistry) -> None:
    await asyncio.gather(*(pulls.have(registry.image) for _ in range(3)))
    assert docker("image", "inspect", "--format", '{{index .Config.Labels "mark"}}', registry.image)
    fetched = [name for name in registry.asked if name.startswith("blobs/")]
    assert fetched
    assert len(fetched) == len(set(fetched)), "nobody pulled it a second time"
    asked = len(registry.asked)
    await pulls.have(registry.image)
    assert len(registry.asked) == asked, "it is there: nobody is asked"


async def test_what_cannot_be_had_is_said_with_the_engines_words(pulls: GuestPulls, registry: SmallRegistry) -> None:
    with pytest.raises(
        ImageMissing, match=r"is not on this engine: get it with docker pull .*could not be pulled: .*unknown"
    ):
        await pulls.have(registry.absent)


async def test_nothing_else_waits_for_a_registry_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    api, threads = DockerApi(None, connections=1), BoundedThreads(1, "test")
    pulls, silent = GuestPulls(api, threads), threading.Event()
    monkeypatch.setattr(api, "find_image", lambda _: None)
    monkeypatch.setattr(api, "pull", lambda *_: silent.wait(60))
    try:
        for number in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await pulls.have(f"silent:{number}")
        assert await threads.call(lambda _: "answered", limit_s=30) == "answered"
    finally:
        silent.set()
        pulls.close()
        threads.close()
        api.close()


async def test_what_is_not_allowed_is_not_pulled(host_config: DockerEngineConfig, registry: SmallRegistry) -> None:
    for config, error in (
        (host_config, EngineError),
        (replace(host_config, guest_images=("127.0.0.1:*",), guest_pull=False), ImageMissing),
    ):
        rig = DockerRig(config, "benchyard-runner:latest")
        try:
            asked = replace(request(rig, order("sleep")), guest=registry.image)
            with pytest.raises(error, match=r"not allowed|is not on this engine"):
                await rig.engine.launch(asked)
        finally:
            await rig.close()
    assert registry.asked == []


async def test_a_launch_has_its_image_pulled(host_config: DockerEngineConfig, registry: SmallRegistry) -> None:
    engine = DockerEngine(replace(host_config, guest_images=("127.0.0.1:*",)))
    rig = DockerRig(host_config, "benchyard-no-such-image:1")
    try:
        asked = replace(request(rig, order("sleep")), guest=registry.image)
        with pytest.raises(ImageMissing, match="benchyard-no-such-image:1"):  # the kit's: the guest's is there by then
            await engine.launch(asked)
    finally:
        await engine.close()
        await rig.close()
    assert docker("image", "inspect", "--format", "{{.Id}}", registry.image)


async def test_a_runner_image_is_pulled_only_where_the_settings_say_so(
    host_config: DockerEngineConfig, registry: SmallRegistry
) -> None:
    rig = DockerRig(host_config, registry.image)
    try:
        with pytest.raises(ImageMissing, match="benchyard images build"):
            await rig.engine.launch(request(rig, order("sleep")))
    finally:
        await rig.close()
    assert registry.asked == []
    rig = DockerRig(replace(host_config, pull=True), registry.image)
    try:
        asked = request(rig, order("sleep"))
        assert (await rig.engine.launch(asked)).name == asked.name
    finally:
        await rig.close()
    assert docker("image", "inspect", "--format", "{{.Id}}", registry.image)
