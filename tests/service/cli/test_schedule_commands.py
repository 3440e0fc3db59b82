"""`benchyard schedules` against a whole service."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.served import Service
from tests.unit.cli.command_line import Benchyard

MODEL = "demo-strong"
IMAGE = "benchyard-runner:latest"


def test_a_schedule_from_making_to_deleting(service: Service, benchyard: Benchyard) -> None:
    assert "benchyard schedules set" in benchyard("schedules").out
    made = benchyard("schedules", "set", MODEL, "--cron", "0 6 * * mon-fri", "-n", "4", "--tz", "Europe/Berlin")
    assert made.code == 0, made.err
    assert "Europe/Berlin time" in made.out
    assert "False alarms: in at most 5 %" in made.out
    changed = benchyard("schedules", "set", MODEL, "--grace", "2h", "--baseline", "last_good", "--json").json
    assert (changed["misfire_grace_s"], changed["baseline"], changed["timezone"]) == (7200, "last_good", "Europe/Berlin")
    assert (changed["cron_expression"], changed["sample_size"]) == ("0 6 * * mon-fri", 4)
    listed = benchyard("schedules", "list", "--json").json["items"]
    assert [each["model"] for each in listed] == [MODEL]
    ran = benchyard("schedules", "run", MODEL)
    assert (ran.code, "95 % interval" in ran.out) == (0, True)
    assert "First run on these problems" in ran.out
    run_id = benchyard("runs", "--json").json["items"][0]["id"]
    fires = benchyard("schedules", "history", MODEL, "--json").json["items"]
    assert [(fire["cause"], fire["run_id"]) for fire in fires] == [("manual", run_id)]
    shown = benchyard("schedules", "history", MODEL)
    assert "fired (manual)" in shown.out
    chosen = benchyard("schedules", "set", MODEL, "--baseline-run", run_id[:20], "--json").json
    assert (chosen["baseline"], chosen["baseline_run_id"]) == ("run", run_id)
    assert "paused" in benchyard("schedules", "pause", MODEL).out
    assert "paused" in benchyard("schedules", "show", MODEL).out
    assert benchyard("schedules", "resume", MODEL, "--json").json["paused"] is False
    assert benchyard("schedules", "show", MODEL).code == 0
    assert benchyard("schedules", "delete", MODEL, "--json").json == {"deleted": MODEL}
    gone = benchyard("schedules", "show", MODEL)
    assert (gone.code, "has no schedule" in gone.err) == (1, True)


def test_a_schedule_of_a_harness(
    service: Service, benchyard: Benchyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sums.py").write_text("pass")
    Path("mine.yaml").write_text(f"{{image: '{IMAGE}', name: mine, command: [python3, sums.py], files: [sums.py]}}")
    made = benchyard("schedules", "set", MODEL, "--cron", "@daily", "--harness", "mine.yaml", "--json")
    assert made.code == 0, made.err
    harness = made.json["harness"]
    assert (harness["argv"], [file["name"] for file in harness["files"]]) == (["python3", "sums.py"], ["sums.py"])
    changed = benchyard("schedules", "set", MODEL, "--cron", "0 7 * * *", "--json").json
    assert (changed["harness"], changed["cron_expression"]) == (harness, "0 7 * * *")
    assert benchyard("schedules", "set", MODEL, "--budget", "2", "--json").json["budget_usd"] == 2
    assert "harness mine" in benchyard("schedules", "list").out
    shown = benchyard("schedules", "show", MODEL).out
    assert f"python3 sums.py in {IMAGE}" in shown
    assert "Not known before the first run" in " ".join(shown.split())
    back = benchyard("schedules", "set", MODEL, "-n", "4", "--json").json
    assert (back["harness"], back["sample_size"], back["benchmarks"]) == (None, 4, ["sample"])
    arguments = ("--harness", "lm-eval", "--task", "gsm8k", "--", "--limit", "3")
    preset = benchyard("schedules", "set", MODEL, "--json", *arguments)
    assert preset.code == 0, preset.err
    assert "--tasks gsm8k --limit 3" in preset.json["harness"]["argv"][-1]
    assert benchyard("schedules", "delete", MODEL).code == 0


def test_preview(service: Service, benchyard: Benchyard) -> None:
    ended = benchyard("schedules", "preview", "30 2 * * *", "--tz", "Europe/Berlin", "--drop", "4", "--count", "2")
    assert "At 02:30 every day, Europe/Berlin time" in ended.out
    assert "problems for a drop of 4 points" in ended.out
    assert len(benchyard("schedules", "preview", "@daily", "--count", "3", "--json").json["next_fires"]) == 3


REFUSED = [
    (("set", MODEL, "--cron", "@daily", "--task", "a.py"), 2, "belong to --harness"),
    (("set", MODEL, "--cron", "@daily", "--harness", "none"), 2, "no preset"),
    (("set", MODEL, "--cron", "@daily", "--harness", "gone.yaml"), 2, "cannot be read"),
    (("set", MODEL, "--cron", "@daily", "--harness", "x.yaml", "--task", "a.py"), 2, "describes the whole harness"),
    (("set", MODEL), 2, "needs --cron and --sample-size"),
    (("set", MODEL, "--cron", "61 * * * *", "-n", "4"), 1, "minute field '61'"),
    (("set", "nobody", "--cron", "@daily", "-n", "4"), 1, "no model"),
    (("set", "nobody", "--cron", "@daily"), 1, "no model"),
    (("set", MODEL, "--cron", "@daily", "-n", "4", "--grace", "soon"), 2, "--grace 'soon'"),
    (("set", MODEL, "--cron", "@daily", "-n", "4", "--draw", "best"), 1, "draw"),
    (("set", MODEL, "--cron", "@daily", "-n", "4", "--baseline", "run"), 1, "needs the id of a run"),
    (("preview", "every day"), 1, "has 2 fields"),
    (("preview", "@daily", "--tz", "Mars"), 1, "no time zone"),
    (("run", MODEL), 1, "has no schedule"),
    (("history", "nobody"), 1, "no model"),
]


@pytest.mark.parametrize(("words", "code", "says"), REFUSED)
def test_errors_say_what_to_do(service: Service, benchyard: Benchyard, words: tuple[str, ...], code: int, says: str) -> None:
    ended = benchyard("schedules", *words)
    assert (ended.code, ended.out) == (code, "")
    assert says in ended.err
