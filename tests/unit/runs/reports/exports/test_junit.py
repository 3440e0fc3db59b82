"""JUnit XML of any result is XML, and says of each item what its result says."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from orchestrator.runs.reports.exports import junit
from orchestrator.runs.tables import ItemRow
from tests.rows import a_run, an_item

HOSTILE = 'a\x00\x1b[31m]]>&<script>"\ud800\ufffe\r\n\t\U0001f600'


def document(*rows: ItemRow) -> ElementTree.Element:
    run = a_run(items=len(rows))
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.outcome] = counts.get(row.outcome, 0) + 1
    text = junit.head(run, "m1", {"sample": counts}) + junit.suite_head(run, "m1", "sample", counts)
    return ElementTree.fromstring(text + junit.cases(rows) + junit.SUITE_TAIL + junit.TAIL)


def test_outcomes_become_failures_and_errors() -> None:
    failed: dict[str, Any] = {"outcome": "wrong_answer", "detail": "test 2: not the expected output", "tests_total": 3}
    tests = [{"outcome": "passed"}, {"outcome": "wrong_answer", "input": "1 2", "expected": "3", "got": "4"}]
    root = document(
        an_item("r", "p0", outcome="passed", wall_s=0.5, data={"calls": [{"latency_s": 1.25}]}),
        an_item("r", "p1", **failed, tests_passed=1, score=0.25, data={"tests": tests}),
        an_item("r", "p2", sample_index=3, outcome="provider_error", detail="", data={}),
    )
    assert root.attrib == {"name": "m1 on sample", "tests": "3", "failures": "1", "errors": "1"}
    (suite,) = root
    facts = {fact.get("name"): fact.get("value") for fact in suite.find("properties") or ()}
    assert (facts["model"], facts["pack_digest"]) == ("m1", "d")
    passed, failure, error = suite.findall("testcase")
    assert (passed.attrib, len(passed)) == ({"classname": "sample", "name": "p0", "time": "1.750"}, 0)
    assert error.get("name") == "p2 [sample 3]"
    assert error.find("error") is not None
    verdict = failure.find("failure")
    assert verdict is not None
    assert verdict.attrib == {"type": "wrong_answer", "message": "test 2: not the expected output"}
    assert (verdict.text or "").splitlines()[1:] == ["1 of 3 tests passed", "input: 1 2", "expected: 3", "got: 4"]
    assert failure.find("properties/property[@name='score']") is not None


@pytest.mark.parametrize("field", ["detail", "problem_id"])
def test_any_text_is_valid(field: str) -> None:
    root = document(an_item("r", **{"outcome": "runtime_error", "data": {}, field: HOSTILE}))
    text = ElementTree.tostring(root, encoding="unicode")
    assert "\N{REPLACEMENT CHARACTER}[31m]]" in text
    assert "<script>" not in text
