"""`benchyard command` against a real service with the fake engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.engines.fake.container import FakeContainer
from tests.served import RunnerClient, Service
from tests.unit.cli.command_line import Benchyard

IMAGE = "benchyard-runner:latest"
RUN = ("command", "run", "--image", IMAGE, "--repeats", "3", "--figure", "rate:larger", "--env", "A=b=c")


async def measured(container: FakeContainer) -> int:
    runner = RunnerClient(container.boot_line, container.container_id[-12:])
    try:
        await runner.claim()
        task = runner.spec["command"]
        good = {"fast": 3, "slow": 2}.get(task["argv"][0], 0)
        if good:
            assert task["env"] == {"A": "b=c"}
            assert [(rule["name"], rule["better"]) for rule in task["figures"]] == [("rate", "larger")]
        for item in runner.open_items():
            number = item["sample_index"]
            figure = {"name": "rate", "value": 10 * good + number, "unit": "\x1b[2J/s", "better": "larger"}
            repeat = {"exit_code": 0, "user_s": 0.1, "figures": [figure]}
            usage = {"cpu_s": 0.1, "wall_s": (1 + 0.01 * number) / (good or 1), "peak_bytes": 1 << 20}
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
    assert "Different benchmarks: fast, slow" in compared.out
    assert IMAGE in benchyard("runs").out
    shown = benchyard("show", ids[0]).out
    assert "3 of 3 items, 3 passed" in shown
    assert "Score" not in shown
    assert "no-model" not in shown


def test_a_batch_of_one_cell(service: Service, benchyard: Benchyard, tmp_path: Path) -> None:
    service.engine.behaviour = measured
    for name in ("fast", "slow", "broken"):
        command = {"image": IMAGE, "command": [name], "repeats": 3}
        if name != "broken":
            command |= {"env": {"A": "b=c"}, "figures": [{"name": "rate", "better": "larger"}]}
        (tmp_path / f"{name}.json").write_text(json.dumps({"commands": [command], "instance_types": ["lite"]}))
    out = ("--out", str(tmp_path / "results"))
    fast = benchyard("batch", "run", str(tmp_path / "fast.json"), *out)
    assert fast.code == 0, fast.err
    assert "wall_s" in fast.out
    assert "rate" in fast.out
    slow = benchyard("batch", "run", str(tmp_path / "slow.json"), *out)
    assert (slow.code, "1 of 3 repeats failed" in slow.err, "wall_s" in slow.out) == (3, True, True), slow.err
    broken = benchyard("batch", "run", str(tmp_path / "broken.json"), *out)
    assert (broken.code, "1 of 1 runs failed" in broken.err) == (3, True), broken.err
    assert "No repeat has passed" in broken.out
    assert len(list(tmp_path.glob("results/*/*/error.tar.gz"))) == 1
    failed = next(each for each in benchyard("batch", "--json").json["items"] if each["state"] == "failed")
    shown = benchyard("batch", "show", failed["id"])
    for text in (fast.out, slow.out, broken.out, shown.out, benchyard("command").out, benchyard("models", "--json").out):
        assert "Score" not in text
        assert "no-model" not in text
    assert "exit" in shown.out or "Every repeat of the command failed" in shown.out


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
