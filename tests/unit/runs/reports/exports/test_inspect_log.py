"""The documents of an Inspect log say what the results say, and no more."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.runs.reports.exports.inspect_log import InspectLog
from orchestrator.runs.tables import ContainerRun
from tests.rows import a_benchmark_task, a_model, a_run, an_item


def log_of(run: ContainerRun | None = None) -> InspectLog:
    return InspectLog(run or a_run(), a_model(params={"temperature": 0.5, "max_tokens": 9}), "m1")


def item(problem_id: str = "p0", outcome: str = "passed", **changed: Any) -> Any:
    data = {"prompt": "2+2?", "answer": "It is 4.", "code": "4", "calls": [{"latency_s": 2.0, "finish_reason": "length"}]}
    return an_item("r", problem_id, outcome=outcome, **{"data": data, **changed})


def test_a_sample_has_question_answer_score_usage_and_time() -> None:
    row = item(input_tokens=10, output_tokens=3, wall_s=0.5, sample_index=1, detail="right")
    row.data["calls"][0] |= {"cached_tokens": 4, "reasoning_tokens": 2}
    sample = log_of().sample(row)
    assert [(message["role"], message["content"]) for message in sample["messages"]] == [
        ("user", "2+2?"),
        ("assistant", "It is 4."),
    ]
    assert (sample["id"], sample["epoch"], sample["output"]["choices"][0]["stop_reason"]) == ("p0", 2, "max_tokens")
    score = sample["scores"]["benchyard"]
    assert (score["value"], score["answer"], score["explanation"]) == ("C", "4", "right")
    usage = {"input_tokens": 6, "output_tokens": 3, "total_tokens": 13, "input_tokens_cache_read": 4, "reasoning_tokens": 2}
    assert sample["model_usage"] == {"m1": usage}
    assert sample["total_time"] == 2.5


def test_what_is_not_the_models_fault_is_an_error_without_score() -> None:
    row = item(outcome="provider_error", detail="no answer in 600 s", data={"prompt": "2+2?"})
    sample, summary = log_of().sample(row), log_of().summary(row)
    assert sample["scores"] == summary["scores"] == {}
    assert sample["error"]["message"] == summary["error"] == "provider_error: no answer in 600 s"
    assert (len(sample["messages"]), sample["output"]["choices"]) == (1, [])


@pytest.mark.parametrize(
    ("tests", "total", "target"),
    [
        pytest.param([{"expected": "4"}], 1, "4", id="the answer is the only test"),
        pytest.param([{"expected": "4"}], 0, "4", id="the answer is no test"),
        pytest.param([{"expected": None}], 1, "", id="it is not shown"),
        pytest.param([{"expected": "4"}], 15, "", id="one excerpt of many tests"),
        pytest.param([{"expected": "4"}, {"expected": "5"}], 2, "", id="several tests"),
        pytest.param([], 0, "", id="none"),
    ],
)
def test_the_target_is_what_the_result_shows(tests: list[Any], total: int, target: str) -> None:
    row = item(tests_total=total, data={"tests": tests})
    assert log_of().sample(row)["target"] == log_of().summary(row)["target"] == target


def test_fractions_and_second_verdicts() -> None:
    row = item(outcome="wrong_answer", parity_outcome="passed", score=0.25)
    scores = log_of().sample(row)["scores"]
    assert (scores["benchyard"]["value"], scores["official_checker"]["value"]) == (0.25, "C")


@pytest.mark.parametrize("name", ["../../etc/passwd", "/root", "a\\b", "a\x00b\n"])
def test_no_member_leaves_its_directory(name: str) -> None:
    member = log_of().member(item(name))
    assert member.startswith("samples/")
    assert member.endswith("_epoch_1.json")
    assert not any(part in member for part in ("..", "//", "\\", "\x00", "\n"))
    assert log_of().sample(item(name))["metadata"]["problem_id"] == name


def test_several_benchmarks_share_a_log() -> None:
    task = a_benchmark_task(problem_ids=["p0"])
    task.benchmarks.append(task.benchmarks[0].model_copy(update={"name": "other"}))
    part: dict[str, Any] = {"estimate": 0.5, "low": 0.1, "high": 0.9, "n": 2, "n_all": 2}
    score = {**part, "pass_at_k": {"1": 0.5}, "parity": part, "benchmarks": {"sample": part, "other": part}}
    run = a_run(benchmarks=["sample", "other"], task=task, status="completed", score=score)
    header = log_of(run).header({"passed": 1, "wrong_answer": 1, "infra_error": 3})
    assert header["status"] == "success"
    assert header["eval"]["dataset"]["sample_ids"] == ["sample/p0", "other/p0"]
    assert [part["name"] for part in header["results"]["scores"]] == ["benchyard", "official_checker", "sample", "other"]
    assert header["results"]["scores"][0]["metrics"]["ci_95_high"]["value"] == 0.9
    assert header["results"]["completed_samples"] == 2
    assert header["plan"]["config"] == {"max_tokens": 9, "temperature": 0.5}


@pytest.mark.parametrize(
    ("status", "expected"),
    [("completed", "success"), ("cancelled", "cancelled"), ("failed", "error"), ("running", "started")],
)
def test_the_status_of_a_run(status: str, expected: str) -> None:
    header = log_of(a_run(status=status, reason="budget_exhausted")).header({})
    assert header["status"] == expected
    assert ("error" in header) == (expected == "error")


def test_means_are_no_accuracy() -> None:
    score = {"metric": "mean", "estimate": 0.4, "low": 0.1, "high": 0.9, "n": 2, "n_all": 2}
    header = log_of(a_run(score=score)).header({"passed": 2})
    assert list(header["results"]["scores"][0]["metrics"]) == ["mean", "ci_95_low", "ci_95_high"]
