"""Conditions of `benchyard run`: a least score, not worse than an earlier run, and JUnit XML."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from orchestrator.engines.fake.container import Behaviour, FakeContainer
from tests.served import RunnerClient, Service
from tests.unit.cli.command_line import Benchyard

RUN = ("run", "-m", "demo-strong", "-n", "12")


def answers(outcome: str) -> Behaviour:
    """Every item ends with this outcome."""

    async def behaviour(container: FakeContainer) -> int:
        runner = RunnerClient(container.boot_line, container.container_id[-12:])
        try:
            await runner.claim()
            items = [{**item, "outcome": outcome} for item in runner.open_items()]
            await runner.send(*(runner.next("progress", item=item) for item in items))
            await runner.send(runner.next("complete"))
            return 0
        finally:
            await runner.close()

    return behaviour


@pytest.mark.parametrize(("least", "code"), [("0.5", 0), ("0.51", 6)])
def test_a_score_below_the_limit_fails(least: str, code: int, service: Service, benchyard: Benchyard) -> None:
    ended = benchyard(*RUN, "--fail-under", least)
    assert ended.code == code
    assert ("has a score of 0.5, --fail-under is 0.51" in ended.err) == bool(code)


def test_a_run_that_is_worse_fails_and_says_what_was_compared(
    service: Service, benchyard: Benchyard, tmp_path: Path
) -> None:
    service.engine.behaviour = answers("passed")
    base = benchyard(*RUN, "--json").json["runs"][0]["id"]
    same = benchyard(*RUN, "--fail-if-worse-than", base)
    assert same.code == 0
    assert "on 12 problems: same" in same.err

    service.engine.behaviour = answers("wrong_answer")
    report = tmp_path / "report.xml"
    ended = benchyard(*RUN, "--fail-if-worse-than", base, "--junit", str(report))
    assert ended.code == 6
    assert f"compared with {base} on 12 problems: worse, -1 " in ended.err
    assert len(list(ElementTree.parse(report).iter("failure"))) == 12

    service.engine.behaviour = answers("passed")
    worse = ended.err.split(" compared with")[0].split()[-1]
    better = benchyard(*RUN, "--fail-if-worse-than", worse)
    assert better.code == 0
    assert "on 12 problems: better, +1 " in better.err


def test_runs_without_a_common_problem_do_not_pass(service: Service, benchyard: Benchyard) -> None:
    ids = [item["problem_id"] for item in _items(service, benchyard)]
    base = benchyard("run", "-m", "demo-strong", "-n", "all", "--id", ids[0], "--json").json["runs"][0]["id"]
    ended = benchyard("run", "-m", "demo-strong", "-n", "all", "--id", ids[1], "--fail-if-worse-than", base)
    assert ended.code == 6
    assert "no problem in common" in ended.err


def _items(service: Service, benchyard: Benchyard) -> list[dict[str, str]]:
    run_id = benchyard(*RUN, "--json").json["runs"][0]["id"]
    return list(benchyard("export", run_id, "--json").json["items"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((*RUN, "--fail-under", "0.5", "--detach"), "leave out --detach"),
        ((*RUN, "-m", "demo-weak", "--junit", "out.xml"), "--junit holds one run"),
        ((*RUN, "--fail-under", "70"), "--fail-under"),
    ],
)
def test_conditions_that_cannot_be_checked_are_refused(
    words: tuple[str, ...], sentence: str, service: Service, benchyard: Benchyard
) -> None:
    before = benchyard("runs", "--json").json["items"]
    ended = benchyard(*words)
    assert ended.code == 2
    assert sentence in ended.err
    assert benchyard("runs", "--json").json["items"] == before
