"""What pages show, from rows."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from orchestrator.costs.precision import quote
from orchestrator.dashboard.rendering.side_by_side import side_by_side
from orchestrator.datasets.packs.pack import Entry
from orchestrator.leaderboard.schemas import PlaceOut
from orchestrator.leaderboard.views.board import ModelDetails, after_all_cut_offs, groups, timeline
from orchestrator.runs.reports.queries import ItemVerdict, ScoredRun
from orchestrator.runs.views.compare import compare
from orchestrator.runs.views.deltas import by_difficulty, why_unsuitable
from orchestrator.runs.views.items import item_page
from orchestrator.runs.views.run import Containers, run_page, stage_marks
from orchestrator.runs.views.runs import explanation, run_line
from orchestrator.schedules.pages import Rhythm
from runner.contract import events
from runner.contract.events import ItemResult, Outcome, Usage
from tests.manual_clock import START
from tests.rows import a_run, an_attempt


def line(problem: str, outcome: str, *, sample: int = 0, position: int = 0, **changed: Any) -> ItemVerdict:
    values: dict[str, Any] = {"parity_outcome": None, "fragile": False, **changed}
    return ItemVerdict(position, "sample", problem, sample, outcome, **values)


def scored(model_id: int, passed: int, n: int, *, run_id: str = "r", comparable: bool = True) -> ScoredRun:
    share = passed / n
    score = {"estimate": share, "low": max(0.0, share - 0.1), "high": min(1.0, share + 0.1), "n": n, "passed": passed}
    score |= {"n_all": n, "estimate_all": share, "comparable": comparable}
    return ScoredRun(run_id, model_id, ("sample",), score, n, 0.5, START, START + timedelta(seconds=n))


@pytest.mark.parametrize(
    ("changed", "why", "sentence"),
    [
        (
            {"status": "pending"},
            "Queued, 4th in line: all 4 instances are in use",
            "Queued, 4th in line: all 4 instances are in use.",
        ),
        ({"status": "pending"}, None, "Queued."),
        ({"status": "running", "waiting_for": "the provider"}, None, "Waiting: the provider"),
        ({"status": "running"}, None, ""),
        ({"status": "running", "desired": "cancel"}, None, "Cancelling: waiting for the container to stop."),
        ({"status": "failed", "reason": "deadline"}, None, "The run took longer than its deadline and was stopped."),
        ({"status": "failed", "reason": "protocol", "error_message": "Oh."}, None, "Oh."),
        ({"status": "completed"}, None, ""),
    ],
)
def test_why_in_one_sentence(changed: dict[str, Any], why: str | None, sentence: str) -> None:
    assert explanation(a_run(**changed), why) == sentence


def test_a_run_under_way_has_a_score_so_far() -> None:
    found = run_line(a_run(status="running", items=10, items_done=4, items_passed=3), "m").score

    assert found is not None
    assert found.provisional
    assert found.estimate == 0.75
    assert found.low < 0.75 < found.high
    assert run_line(a_run(status="running"), "m").score is None


def test_stages_have_their_times() -> None:
    run = a_run(status="running", attempt=1)
    stages = {"boot": (START + timedelta(seconds=3)).isoformat(), "running": (START + timedelta(seconds=5)).isoformat()}
    marks = stage_marks(run, an_attempt(run.id, dispatched_at=START + timedelta(seconds=1), facts={"stages": stages}))

    assert [(mark.name, mark.state, mark.took_s) for mark in marks] == [
        ("queued", "past", 1.0),
        ("starting", "past", 2.0),
        ("boot", "past", 2.0),
        ("provision", "ahead", None),
        ("running", "now", None),
        ("uploading", "ahead", None),
        ("finished", "ahead", None),
    ]


def test_nonsense_in_a_runners_facts_is_survived() -> None:
    run = a_run(status="running", attempt=1)

    marks = stage_marks(run, an_attempt(run.id, facts={"stages": {"boot": "yesterday", "running": 7}}))

    assert [mark.at for mark in marks if mark.name in ("boot", "running")] == [None, None]


def test_groups_flips_and_denominators_of_a_run() -> None:
    run = a_run(status="completed", items=4, items_done=4)
    entries = {("sample", "p0"): Entry("p0", "easy", "2025-01-05"), ("sample", "p1"): Entry("p1", "hard", "2025-02-05")}
    items = [
        line("p0", "passed", parity_outcome="passed"),
        line("p1", "passed", parity_outcome="wrong_answer"),
        line("p2", "infra_error"),
        line("p3", "wrong_answer", fragile=True),
    ]

    view = run_page(run, "m", [], items, entries, containers=Containers({}, {}), now=START, why=None)

    assert view.summary is not None
    assert (view.summary.n, view.summary.n_all, view.summary.flips) == (3, 4, 1)
    assert not view.summary.comparable
    assert set(view.summary.by_difficulty) == {"easy", "hard"}
    assert set(view.summary.by_month) == {"2025-01", "2025-02"}
    assert [item.problem_id for item in view.flipped] == ["p1"]
    assert view.fragile == 1
    assert view.retries_possible  # the infrastructure's error can be done again


def test_a_quote_counts_problems_not_samples() -> None:
    once, often = quote(50, 1, []), quote(50, 10, [])

    assert once is not None
    assert often is not None
    assert once.margin == often.margin == pytest.approx(0.134, abs=0.002)
    assert often.items == 500
    assert not once.from_past
    assert quote(0, 1, []) is None


def test_a_quote_learns_from_earlier_runs() -> None:
    found = quote(20, 1, [scored(1, 9, 10)])

    assert found is not None
    assert found.from_past
    assert found.assumed == 0.9


def test_paired_comparison() -> None:
    first = [line(f"p{n}", "passed" if n < 4 else "wrong_answer") for n in range(10)]
    second = [line(f"p{n}", "passed" if n != 0 else "time_limit") for n in range(10)] + [line("p99", "passed")]

    found = compare([first, second])
    own = found.against[0]

    assert found.counts == {"fixed": 6, "broken": 1, "both": 3, "neither": 0}
    assert own.p_value == own.adjusted == pytest.approx(0.125)
    assert own.difference.estimate == pytest.approx(0.5)
    assert own.only_one == 1
    assert own.headline("old", "new") == "10 shared problems: old passes 4, new 9; no clear difference (p = 0.125)."


def test_several_runs_against_the_first() -> None:
    first = [line(f"p{n}", "wrong_answer", position=n) for n in range(9)] + [line("p9", "passed", position=9)]
    better = [line(f"p{n}", "passed", position=n) for n in range(10)]
    worse = [line(f"p{n}", "wrong_answer", position=n) for n in range(5, 10)]

    found = compare([first, better, worse])

    assert [own.verdict for own in found.against] == ["better", "unclear"]
    assert [own.pairs.total for own in found.against] == [10, 5], "each pair has all that the two share"
    assert found.against[0].adjusted == pytest.approx(2 * found.against[0].p_value)
    assert found.counts == {"fixed": 4, "broken": 1, "both": 0, "neither": 0}, "items are those that all have"
    assert [item.results[0].position for item in found.items] == [5, 6, 7, 8, 9]
    assert [len(item.results) for item in found.of_kind("broken")] == [3]


def test_errors_of_ours_are_not_compared_and_samples_count_once() -> None:
    first = [line("p0", "passed", sample=n) for n in range(3)] + [line("p1", "infra_error")]
    second = [line("p0", "wrong_answer", sample=n) for n in range(3)] + [line("p1", "passed")]

    found = compare([first, second])

    assert found.against[0].left_out == 1
    assert found.against[0].pairs.total == 1
    assert found.counts["broken"] == 3
    assert compare([[], []]).against[0].sentence.startswith("No shared problems")


def test_who_cancelled_is_named_where_it_is_known() -> None:
    run = a_run(status="cancelled", reason="cancelled_by_user")

    assert explanation(run, cancelled_by="Ada") == "Cancelled by Ada."
    assert explanation(run) == "The run was cancelled by a user."


@pytest.mark.parametrize(
    ("given", "cron"),
    [
        ({}, "0 6 * * *"),
        ({"preset": "weekdays", "at": "9:05"}, "5 9 * * MON-FRI"),
        ({"preset": "weekly", "at": "23:59", "weekday": "SUN"}, "59 23 * * SUN"),
        ({"preset": "monthly", "day": "31"}, "0 6 31 * *"),
        ({"preset": "hours", "every": "4", "at": "00:30"}, "30 */4 * * *"),
        ({"cron": "1 2 3 4 5"}, "1 2 3 4 5"),
        ({"preset": "daily", "at": "25:00"}, "0 6 * * *"),
    ],
)
def test_the_cron_builder(given: dict[str, str], cron: str) -> None:
    assert Rhythm.of(given).expression() == cron


def test_a_leaderboard_shows_groups_and_what_a_model_may_have_seen() -> None:
    entries = [Entry(f"p{n}", date=f"2025-{n:02}-10") for n in range(1, 7)]
    common: dict[str, Any] = {"run_id": "r", "estimate": 0.5, "low": 0.4, "high": 0.6, "problems": 6}
    places = [
        PlaceOut(model="a", best=1, worst=2, group=1, tied_with=["b"], **common),
        PlaceOut(model="b", best=1, worst=2, group=1, tied_with=["a"], **common),
        PlaceOut(model="c", best=3, worst=3, group=2, tied_with=[], **common),
    ]
    known = {"a": ModelDetails(date(2025, 3, 10)), "c": ModelDetails(date(2026, 1, 1))}

    found = groups(places, known, entries)

    assert [[(row.place.model, row.places, row.seen) for row in group] for group in found] == [
        [("a", "1 – 2", 3), ("b", "1 – 2", 0)],
        [("c", "3", 6)],
    ]
    assert after_all_cut_offs(known, entries) is None
    assert after_all_cut_offs({"a": known["a"]}, entries) == date(2025, 3, 11)


def test_a_window_of_time() -> None:
    entries = [Entry(f"p{n}", date=f"2025-{n:02}-10") for n in (1, 2, 4)] + [Entry("old", date="2024-12-31"), Entry("none")]
    found = timeline(entries, date(2025, 2, 1), date(2025, 3, 1), {"a": ModelDetails(date(2025, 2, 10))})

    assert found is not None
    assert (found.first, found.last, found.months, found.start, found.end) == ("2024-12", "2025-04", 5, 2, 3)
    assert [(bar.count, bar.inside) for bar in found.bars] == [(1, False), (1, False), (1, True), (0, True), (1, False)]
    assert found.words == "1 of 5 problems, 2025-02 to 2025-03"
    assert found.bars[2].x < found.marks[0].x < found.bars[3].x
    assert timeline([Entry("x")], None, None, {}) is None


def test_failed_tests_of_an_item_are_paged() -> None:
    tests = [events.TestResult(index=n, outcome=Outcome.WRONG_ANSWER, expected="a", got="b") for n in range(25)]
    tests += [events.TestResult(index=25 + n, outcome=Outcome.PASSED, usage=Usage(cpu_s=n)) for n in range(3)]
    item = ItemResult(benchmark="b", problem_id="p", outcome=Outcome.WRONG_ANSWER, tests=tests)

    first, last = item_page(item, {}), item_page(item, {}, 20)

    assert [test.index for test in first.failed] == list(range(10))
    assert (first.more_failed, first.failed_count, first.passed_count) == (10, 25, 3)
    assert ([test.index for test in last.failed], last.more_failed) == ([20, 21, 22, 23, 24], None)
    assert first.slowest is not None
    assert first.slowest.index == 27


def test_values_between_0_and_1_are_compared_as_values() -> None:
    first = [line(f"p{number}", "wrong_answer", position=number, score=0.5 + number / 100) for number in range(30)]
    second = [line(f"p{number}", "wrong_answer", position=number, score=0.6 + number / 100) for number in range(30)]
    comparison = compare([first, second])
    against = comparison.against[0]
    assert (against.verdict, against.metric) == ("better", "mean")
    assert against.difference.estimate == pytest.approx(0.1)
    assert against.difference.low > 0
    assert against.p_value == pytest.approx(2 * 0.5**30)
    assert (against.pairs.only_second, against.pairs.only_first, against.pairs.total) == (30, 0, 30)
    assert comparison.counts == {"fixed": 30, "broken": 0, "both": 0, "neither": 0}
    assert compare([first, first]).against[0].verdict == "same"
    assert compare([second, first]).against[0].verdict == "worse"


def test_a_run_with_values_against_one_without_uses_what_each_item_counts() -> None:
    first = [line(f"p{number}", "passed", position=number) for number in range(12)]
    second = [line(f"p{number}", "wrong_answer", position=number, score=0.9) for number in range(12)]
    against = compare([first, second]).against[0]
    assert against.difference.estimate == pytest.approx(-0.1)
    assert against.verdict == "worse"


def test_differences_by_difficulty_are_of_shared_items_from_easy_to_hard() -> None:
    first = [line("p1", "passed"), line("p2", "wrong_answer"), line("p3", "passed"), line("only", "passed")]
    second = [line("p1", "passed"), line("p2", "passed"), line("p3", "wrong_answer")]
    entries = {("sample", f"p{n}"): Entry(f"p{n}", difficulty=ease) for n, ease in ((1, "hard"), (2, "easy"), (3, "easy"))}
    groups = by_difficulty(compare([first, second]).items, entries)
    assert [(group.name, group.items, group.means, group.changes) for group in groups] == [
        ("easy", 2, (0.5, 0.5), (0.0,)),
        ("hard", 1, (1.0, 1.0), (0.0,)),
    ]


def test_two_texts_side_by_side() -> None:
    lines, cut = side_by_side("a\nb\nc", "a\nx\nc\nd")
    assert not cut
    assert [(line.kind, line.first, line.second) for line in lines] == [
        ("same", (1, "a"), (1, "a")),
        ("changed", (2, "b"), (2, "x")),
        ("same", (3, "c"), (3, "c")),
        ("second", None, (4, "d")),
    ]
    assert side_by_side("a\n" * 500, "")[1]


def sampled(pack_digest: str, prompt_version: str) -> dict[str, Any]:
    return {"samples": {"sample": {"pack_digest": pack_digest, "prompt_version": prompt_version}}}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"items_done": 0}, "no results yet"),
        ({"benchmarks": ["other"]}, "another benchmark"),
        ({"score": sampled("new", "v")}, "another version of the dataset"),
        ({"score": sampled("d", "w")}, "other prompts"),
        ({}, ""),
    ],
)
def test_why_a_run_should_not_be_compared(changed: dict[str, Any], why: str) -> None:
    score = sampled("d", "v")
    first = a_run(items_done=3, score=score)
    assert why_unsuitable(a_run(**{"items_done": 3, "score": score, **changed}), first) == why


def test_tests_that_were_not_run_are_named_and_the_end_of_the_error_is_shown() -> None:
    crash = "Traceback\n" + "  line\n" * 30 + "ValueError: no"
    tests = [
        events.TestResult(index=0, outcome=Outcome.PASSED),
        events.TestResult(index=1, outcome=Outcome.RUNTIME_ERROR, stderr=crash, expected="a b\nc", got="a x\nc"),
    ]
    item = ItemResult(
        benchmark="b",
        problem_id="p",
        outcome=Outcome.RUNTIME_ERROR,
        tests=tests,
        tests_total=6,
        thinking="Hm.",
        code="x = 1\n",
    )
    page = item_page(item, {})
    assert page.not_run == "3 to 6"
    assert page.failed[0].error[-1] == "ValueError: no"
    assert [pair.kind for pair in page.failed[0].diff] == ["changed", "same"]
    assert page.failed[0].diff[0].marked == (("a ", "b", ""), ("a ", "x", ""))
    assert page.thinking.text == "Hm."
    assert page.code is not None
    assert ["".join(text for _, text in line) for line in page.code] == ["x = 1"]


def test_a_run_that_its_budget_ended_is_not_shown_as_completed() -> None:
    assert run_line(a_run(status="completed", reason="budget_exhausted", items_done=2), "m").at_budget
    assert not run_line(a_run(status="completed", items_done=2), "m").at_budget
    assert not run_line(a_run(status="failed", reason="budget_exhausted"), "m").at_budget


def test_a_failed_run_has_no_stage_that_looks_successful() -> None:
    failed = stage_marks(a_run(status="failed", completed_at=START), an_attempt("r"))
    assert {mark.state for mark in failed} <= {"over", "stopped", "ahead"}
    assert [mark.name for mark in failed if mark.state == "stopped"] == ["finished"]
