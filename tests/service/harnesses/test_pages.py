"""The form for harness runs, without script: what it makes, what it refuses, and that it keeps what was typed."""

from __future__ import annotations

import html
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from orchestrator.engines.fake.engine import FakeEngine
from tests.conftest import settings_in
from tests.served import Service, served
from tests.service.commands.test_pages import filled
from tests.service.dashboard.hostile_texts import assert_harmless
from tests.service.dashboard.test_pages import browser
from tests.service.harnesses.simulated_harness import SimulatedHarness

pytestmark = pytest.mark.anyio

FORM = {
    "model": "demo-strong",
    "preset": "",
    "image": "inspect:1",
    "command": "python3 ask.py # <script>alert(1)</script>",
    "format": "junit",
    "paths": "out/*.xml more/*.xml",
    "file_name": "ask.py",
    "file": "print('</textarea><script>')\nprint(2)",
    "env": "A=b=c",
    "name": "mine",
    "budget_usd": "1.5",
    "concurrency": "4",
    "instance_type": "standard-1",
}
PRESET = {"model": "demo-strong", "preset": "inspect", "task": "sums.py@sums", "arguments": "--limit '3'", "file": "x = 1"}


@pytest.fixture(scope="module")
async def yard(tmp_path_factory: pytest.TempPathFactory, data_template: Path, anyio_backend: str) -> AsyncIterator[Service]:
    settings = settings_in(tmp_path_factory.mktemp("form"), data_template)(command_images=("inspect:*",))
    async with served(settings, engine=FakeEngine(behaviour=SimulatedHarness(count=2))) as service:
        yield service
        await service.engine.end_all()


async def test_a_command_of_an_image(yard: Service) -> None:
    async with browser(yard) as client:
        assert "/runs/new/harness" in (await client.get("/runs")).text
        form = await client.get("/runs/new/harness")
        assert form.status_code == 200
        made = await client.post("/runs/new/harness", data=FORM | {"key": "k"})
        assert made.status_code == 303, made.text
        again = await client.post("/runs/new/harness", data=FORM | {"key": "k"})
        assert again.headers["location"] == made.headers["location"], "a form that is sent twice starts one run"
        assert_harmless((await client.get(made.headers["location"])).text)
    run = await yard.until(made.headers["location"].rpartition("/")[2], "completed")
    assert (run["kind"], run["model"], run["image"], run["benchmarks"]) == ("harness", "demo-strong", "inspect:1", ["mine"])
    assert (run["budget_usd"], run["concurrency"], run["instance_type"]) == (1.5, 4, "standard-1")


async def test_a_preset_with_a_task(yard: Service) -> None:
    async with browser(yard) as client:
        made = await client.post("/runs/new/harness", data=PRESET | {"file_name": "sums.py", "image": "inspect:1"})
    assert made.status_code == 303, made.text
    run = await yard.until(made.headers["location"].rpartition("/")[2], "completed")
    assert (run["image"], run["benchmarks"]) == ("benchyard-harness-inspect:latest", ["sums"])


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (FORM | {"command": " "}, "say what to run"),
        (FORM | {"image": "other:1"}, "BENCHYARD_COMMAND_IMAGES"),
        (FORM | {"model": "nobody"}, "no model"),
        (FORM | {"format": "csv"}, "harness.results.format"),
        (FORM | {"paths": "/etc/passwd"}, "relative path"),
        (FORM | {"file_name": "../x"}, "relative path"),
        (FORM | {"env": "A"}, "NAME=VALUE"),
        (FORM | {"env": "API_KEY=x"}, "looks like a secret"),
        (FORM | {"budget_usd": "much"}, "budget_usd"),
        (FORM | {"preset": "inspect", "task": "a"}, "choose a preset"),
        (FORM | {"preset": "<b>", "command": "", "task": "a"}, "no preset"),
        (PRESET | {"task": ""}, "say which task"),
        (PRESET | {"arguments": "'"}, "as a shell would"),
    ],
    ids=[
        *("command", "image", "model", "format", "paths", "file", "env", "secret", "budget"),
        *("both", "preset", "task", "arguments"),
    ],
)
async def test_a_wrong_form_says_what_is_wrong_and_keeps_what_was_typed(
    yard: Service, form: dict[str, str], words: str
) -> None:
    async with browser(yard) as client:
        answer = await client.post("/runs/new/harness", data=form)
    assert answer.status_code == 422
    assert words in html.unescape(answer.text)
    assert_harmless(answer.text)
    kept = filled(answer.text)
    for name in ("command", "file", "env", "task", "paths"):
        assert kept[name].replace("\r\n", "\n") == form.get(name, "").strip()
