"""`benchyard command` against a real service with the fake engine."""

from __future__ import annotations

import pytest

from orchestrator.engines.fake_container import FakeContainer
from tests.served import RunnerClient, Service
from tests.unit.cli.conftest import Benchyard

IMAGE = "benchyard-runner:latest"
RUN = ("command", "run", "--image", IMAGE, "--repeats", "3", "--figure", "rate:larger", "--env", "A=b=c")


async def measured(container: FakeContainer) -> int:
    runner = RunnerClient(container.boot_line, container.container_id[-12:])
    try:
        await runner.claim()
        task = runner.spec["command"]
        good = 3 if task["argv"][0] == "fast" else 2
        assert task["env"] == {"A": "b=c"}
        assert [(rule["name"], rule["better"]) for rule in task["figures"]] == [("rate", "larger")]
        for item in runner.open_items():
            number = item["sample_index"]
            figure = {"name": "rate", "value": 10 * good + number, "unit": "\x1b[2J/s", "better": "larger"}
            repeat = {"exit_code": 0, "user_s": 0.1, "figures": [figure]}
            usage = {"cpu_s": 0.1, "wall_s": (1 + 0.01 * number) / good, "peak_bytes": 1 << 20}
            outcome = "passed" if number < good else "runtime_error"
            await runner.send(runner.next("progress", item={**item, "outcome": outcome, "usage": usage, "repeat": repeat}))
        await runner.send(runner.next("complete", items=3))
        return 0
    finally:
        await runner.close()


def test_run_show_list_and_compare(service: Service, benchyard: Benchyard) -> None:
    service.engine.behaviour = measured
    fast = benchyard(*RUN, "--", "fast", "-n", "--image", "x")
    assert fast.code == 0, fast.err
    assert "fast -n --image x" in fast.out
    assert "wall_s" in fast.out
    assert "\x1b" not in fast.out
    slow = benchyard(*RUN, "--json", "--", "slow")
    assert (slow.code, "1 of 3 repeats failed" in slow.err) == (3, True)
    listed = {each["id"] for each in benchyard("command", "--json").json["items"]}
    ids = [*(listed - {slow.json["run_id"]}), slow.json["run_id"]]
    assert "runtime_error" in benchyard("command", "show", ids[1]).out
    compared = benchyard("command", "compare", *ids)
    assert "slower: 1.49 times (" in compared.out
    assert "worse: " in compared.out
    assert "different benchmarks: fast, slow" in compared.out
    assert IMAGE in benchyard("runs").out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("command", "run", "--image", "other:1", "--", "true"), 1, "BENCHYARD_COMMAND_IMAGES"),
        (("command", "run", "--image", IMAGE), 2, "COMMAND"),
        (("command", "run", "--image", IMAGE, "--env", "A", "--", "true"), 2, "NAME=VALUE"),
        (("command", "run", "--image", IMAGE, "--figure", "a:worst", "--", "true"), 2, "NAME=PATTERN"),
        (("command", "compare"), 2, "two runs or more"),
    ],
)
def test_mistakes(words: tuple[str, ...], code: int, said: str, service: Service, benchyard: Benchyard) -> None:
    ended = benchyard(*words)
    assert (ended.code, said in ended.err) == (code, True), ended.err
