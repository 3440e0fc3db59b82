"""The form for command benchmarks: what it makes, what it refuses, and that a run can be made again from its page."""

from __future__ import annotations

import html
import re

import pytest

from tests.served import Service
from tests.service.dashboard.hostile_texts import assert_harmless
from tests.service.dashboard.test_pages import browser

pytestmark = pytest.mark.anyio

FORM = {
    "image": "benchyard-runner:latest",
    "command": "python -c 'print(1)' \\\n | cat # <script>alert(1)</script>",
    "repeats": "3",
    "warmups": "1",
    "timeout_s": "2.5",
    "figures": "score [points]:larger\nmean=$.results[0].mean\n\n=(?P<reads>\\d+) reads",
    "env": "A=b=c\nB=",
    "name": "</textarea><script>",
    "workdir": "/tmp",
    "instance_type": "standard-1",
}


def filled(page: str) -> dict[str, str]:
    """What the form of a page would send."""
    found = dict(re.findall(r'<input [^>]*?name="(\w+)"[^>]*? value="([^"]*)"', page))
    found |= {
        name: value.removeprefix("\n")
        for name, value in re.findall(r'<textarea[^>]*name="(\w+)"[^>]*>(.*?)</textarea>', page, re.S)
    }
    return {name: html.unescape(value) for name, value in found.items()}


async def test_from_the_form_to_the_run_and_back(service: Service) -> None:
    async with browser(service) as client:
        made = await client.post("/runs/new/command", data=FORM | {"key": "k"})
        assert made.status_code == 303, made.text
        place = made.headers["location"]
        assert (await client.post("/runs/new/command", data=FORM | {"key": "k"})).headers["location"] == place
        run_id = place.rpartition("/")[2]
        task = (await service.client.get(f"/api/commands/{run_id}")).json()["task"]
        assert task["argv"] == ["/bin/sh", "-c", FORM["command"]]
        assert (task["repeats"], task["warmups"], task["timeout_s"], task["workdir"]) == (3, 1, 2.5, "/tmp")
        assert task["env"] == {"A": "b=c", "B": ""}
        assert [
            (each["name"], each["unit"], each["better"], each["json_path"], each["pattern"]) for each in task["figures"]
        ] == [
            ("score", "points", "larger", None, None),
            ("mean", "", "smaller", "results[0].mean", None),
            ("", "", "smaller", None, r"(?P<reads>\d+) reads"),
        ]
        shown = await client.get(place)
        assert f"/runs/new/command?like={run_id}" in shown.text
        again = await client.get(f"/runs/new/command?like={run_id}")
        assert_harmless(again.text)
        assert '<option value="standard-1" selected' in again.text
        second = await client.post("/runs/new/command", data=filled(again.text) | {"instance_type": "standard-1"})
        assert second.status_code == 303, second.text
        of_second = second.headers["location"].rpartition("/")[2]
        assert of_second != run_id
        assert (await service.client.get(f"/api/commands/{of_second}")).json()["task"] == task
        assert (await client.get("/runs/new/command?like=nothing")).status_code == 200


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"command": "  "}, "say what to run"),
        ({"image": "other:1"}, "BENCHYARD_COMMAND_IMAGES"),
        ({"image": "<b>"}, "command.image"),
        ({"repeats": "many"}, "command.repeats"),
        ({"repeats": "0"}, "command.repeats"),
        ({"timeout_s": "nan"}, "command.timeout_s"),
        ({"figures": "a:worst"}, "NAME=PATTERN"),
        ({"figures": "a=("}, "not a regular expression"),
        ({"env": "A"}, "NAME=VALUE"),
        ({"env": "API_KEY=x"}, "looks like a secret"),
        ({"workdir": "here"}, "command.workdir"),
        ({"instance_type": "huge"}, "no instance type"),
    ],
    ids=str,
)
async def test_a_wrong_form_says_what_is_wrong_and_keeps_what_was_typed(
    service: Service, changed: dict[str, str], said: str
) -> None:
    async with browser(service) as client:
        answer = await client.post("/runs/new/command", data=FORM | changed)
    assert answer.status_code == 422
    assert said in html.unescape(answer.text)
    assert_harmless(answer.text)
    kept, given = filled(answer.text), {**FORM, **changed}
    for name in ("image", "command", "repeats", "figures", "env"):
        assert kept[name].replace("\r\n", "\n") == given[name].strip()
