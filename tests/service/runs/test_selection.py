"""Which problems a run gets, as asked for over HTTP, and what the run says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.datasets.fetching.library import Order, add
from tests.served import Service

pytestmark = pytest.mark.anyio


def row(name: str, day: str, difficulty: str, platform: str = "atcoder") -> str:
    tests = [{"input": "1\n", "output": "1\n", "testtype": "stdin"}]
    fields = {"question_title": name, "question_content": "?", "question_id": name, "public_test_cases": tests}
    return json.dumps({**fields, "contest_date": f"{day}T00:00:00", "difficulty": difficulty, "platform": platform})


ROWS = [
    row("a", "2024-01-10", "easy"),
    row("b", "2024-02-10", "hard", "leetcode"),
    row("c", "2024-03-10", "easy"),
    row("abc350_c", "2024-03-11", "hard"),
]


DAYS = {"a": "2024-01-10", "b": "2024-02-10", "c": "2024-03-10", "abc350_c": "2024-03-11"}


@pytest.fixture
def pack(shared_service: Service, tmp_path: Path) -> None:
    if not (shared_service.settings.data / "packs" / "dated.pack").exists():
        (tmp_path / "p.jsonl").write_text("\n".join(ROWS) + "\n")
        add(shared_service.settings.data, Order("dated", source=str(tmp_path / "p.jsonl")))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"after": "2024-02-10"}, {"b", "c", "abc350_c"}),
        ({"before": "2024-02-10"}, {"a", "b"}),
        ({"after": "2024-02-01", "before": "2024-03-10"}, {"b", "c"}),
        ({"difficulty": ["easy"]}, {"a", "c"}),
        ({"platform": ["leetcode", "codeforces"]}, {"b"}),
        ({"ids": ["c", "a"], "subset_pct": None}, {"a", "c"}),
        ({"exclude_flagged": True}, {"a", "b", "c"}),
    ],
    ids=["after", "before", "window", "difficulty", "platform", "ids", "flagged"],
)
async def test_problems_are_chosen_as_asked(
    shared_service: Service, pack: None, asked: dict[str, Any], expected: set[str]
) -> None:
    body = {"model_id": "demo-strong", "benchmarks": ["dated"], "subset_pct": 100.0, **asked}
    body = {name: value for name, value in body.items() if value is not None}
    quote = await shared_service.client.post("/api/quotes", json=body)
    assert (quote.status_code, quote.json().get("items")) == (200, len(expected)), quote.text
    answer = await shared_service.client.post("/api/container-runs", json=body)
    assert answer.status_code == 202, answer.text
    (plan,) = (await shared_service.run(answer.json()["run_id"]))["plan"]
    assert set(plan["problem_ids"]) == expected
    days = sorted(
        {"a": "2024-01-10", "b": "2024-02-10", "c": "2024-03-10", "abc350_c": "2024-03-11"}[id_] for id_ in expected
    )
    assert (plan["count"], plan["first_date"], plan["last_date"]) == (len(expected), days[0], days[-1])
    assert plan["pack_digest"].startswith("sha256:")
    assert plan["flagged_excluded"] == (1 if asked.get("exclude_flagged") else None)
    assert plan["parity"] is True


async def test_the_second_verdict_can_be_left_out(shared_service: Service, pack: None) -> None:
    body = {"model_id": "demo-strong", "benchmarks": ["dated"], "sample_size": 1, "parity": False}
    answer = await shared_service.client.post("/api/container-runs", json=body)
    (plan,) = (await shared_service.run(answer.json()["run_id"]))["plan"]
    assert plan["parity"] is False


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"after": "2025-01-01"}, 422),
        ({"after": "soon"}, 422),
        ({"after": "2024-03-01", "before": "2024-02-01"}, 422),
        ({"difficulty": []}, 422),
        ({"difficulty": "easy"}, 422),
        ({"ids": ["nope"]}, 404),
        ({"exclude_flagged": 1}, 422),
        ({"parity": "no"}, 422),
    ],
    ids=str,
)
async def test_what_makes_no_sense_is_refused(
    shared_service: Service, pack: None, asked: dict[str, Any], status: int
) -> None:
    body = {"model_id": "demo-strong", "benchmarks": ["dated"], "subset_pct": 100.0, **asked}
    for path in ("/api/container-runs", "/api/quotes"):
        answer = await shared_service.client.post(path, json=body)
        assert answer.status_code == status, answer.text
