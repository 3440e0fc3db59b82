"""Stored answers through the API: what is taken, what is refused and why, and what the runner is told."""

from __future__ import annotations

import gzip
import json
from typing import Any

import httpx
import pytest

from orchestrator.engines.fake.container import FakeContainer
from orchestrator.runs.reports import queries as page_queries
from tests.served import RunnerClient, Service, http_runner

pytestmark = pytest.mark.anyio


def lines(*rows: Any) -> bytes:
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode()


def ids(service: Service) -> list[str]:
    return [entry.id for entry in service.services.catalogue.entries("sample")]


async def post(service: Service, body: bytes, **query: str) -> httpx.Response:
    return await service.client.post("/api/grades", params={"benchmark": "sample", **query}, content=body)


class Looking:
    """A runner that keeps what it was told, and gives every item the outcome asked for."""

    def __init__(self, outcome: str) -> None:
        self.outcome = outcome
        self.spec: dict[str, Any] = {}
        self.problems: list[dict[str, Any]] = []

    async def __call__(self, container: FakeContainer) -> int:
        runner = RunnerClient(container.boot_line, container.container_id[-12:])
        try:
            await runner.claim()
            self.spec = runner.spec
            answer = await runner.http.get(f"/runner/runs/{runner.spec['run_id']}/problems")
            self.problems = [json.loads(line) for line in answer.text.splitlines()]
            items = runner.open_items()
            for item in items:
                more = {"parity_outcome": "passed", "answer": "text", "calls": [{"call_key": "k"}]}
                await runner.send(runner.next("progress", item={**item, "outcome": self.outcome, **more}))
            await runner.send(runner.next("complete", items=len(items)))
            return 0
        finally:
            await runner.close()


async def test_answers_become_a_run_with_exactly_their_items(service: Service) -> None:
    first, second, third, *rest = ids(service)
    looking = service.engine.behaviour = Looking("passed")
    body = lines(
        {"question_id": first, "code_list": ["print(1)", "print(2)"]},
        {"problem_id": third, "sample_index": 5, "answer": "```python\nprint()\n```"},
        {"question_id": "no-such", "code_list": ["x"]},
        "{broken",
        {"problem_id": third, "sample_index": 5, "code": "again"},
    )
    answer = await post(service, gzip.compress(body), filename="my samples.jsonl.gz")
    assert answer.status_code == 202, answer.text
    said = answer.json()
    assert (said["answers"], said["problems"], said["unattempted"]) == (3, 2, 1 + len(rest))
    assert said["unattempted_ids"][0] == second
    assert said["left_out"] == 3
    assert "line 3" in said["left_out_lines"][0]
    assert "no-such" in said["left_out_lines"][0]
    assert "line 4" in said["left_out_lines"][1]
    assert "came before" in said["left_out_lines"][2]
    run = await service.until(said["run_id"], "completed")
    assert answer.headers["location"] == f"/api/container-runs/{said['run_id']}"
    assert (run["kind"], run["model"], run["trigger_type"], run["progress"]) == (
        "grade",
        "stored-answers",
        "grade",
        {"done": 3, "total": 3},
    )
    assert looking.spec["kind"] == "grade"
    assert [(p["problem_id"], p["given"]) for p in looking.problems] == [
        (
            first,
            [
                {"sample_index": 0, "text": None, "code": "print(1)", "finish": "stop"},
                {"sample_index": 1, "text": None, "code": "print(2)", "finish": "stop"},
            ],
        ),
        (third, [{"sample_index": 5, "text": "```python\nprint()\n```", "code": None, "finish": "stop"}]),
    ]
    items = (await service.client.get(f"/api/container-runs/{said['run_id']}/items")).json()["items"]
    assert [(item["problem_id"], item["sample_index"]) for item in items] == [(first, 0), (first, 1), (third, 5)]
    assert not list(service.settings.data.joinpath("uploads").iterdir())


@pytest.mark.parametrize(
    ("body", "query", "status", "sentence"),
    [
        (b"", {}, 422, "is empty"),
        (b"{}\n", {}, 422, "line 1"),
        (b"[]", {}, 422, "not a list of answers"),
        (b'{"task_id": "x", "completion": "y"}\n', {"benchmark": "absent"}, 404, "no benchmark 'absent'"),
        (b'{"task_id": "x", "completion": "y"}\n', {"filename": "../../etc/passwd"}, 422, "used as a file name"),
        (b'{"task_id": "x", "completion": "y"}\n', {"instance_type": "huge"}, 422, "no instance type 'huge'"),
        (gzip.compress(b"{}\n" * 10_000)[:40], {"filename": "a.gz"}, 422, ""),
        (b"PK\x03\x04 not a zip", {"filename": "a.zip"}, 422, ""),
        (b"\xff\xfe\x00\n", {}, 422, "line 1"),
    ],
    ids=["empty", "no id", "empty list", "no benchmark", "path", "type", "cut gzip", "bad zip", "not text"],
)
async def test_what_cannot_be_graded_is_refused(
    shared_service: Service, body: bytes, query: dict[str, str], status: int, sentence: str
) -> None:
    answer = await post(shared_service, body, **query)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    assert sentence in answer.json()["detail"]
    assert not list(shared_service.settings.data.joinpath("uploads").glob("*"))


async def test_stored_answers_put_no_model_into_the_catalogue(service: Service) -> None:
    body = lines({"problem_id": ids(service)[0], "code": "print()"})
    for _ in range(2):
        run_id = (await post(service, body)).json()["run_id"]
        await service.until(run_id, "completed")
    models = (await service.client.get("/api/models", params={"archived": True})).json()["items"]
    assert "stored-answers" not in [model["slug"] for model in models]
    refused = await service.client.post("/api/container-runs", json={"model_id": "stored-answers", "sample_size": 1})
    assert refused.status_code == 404


async def test_the_largest_instance_type_that_fits_is_taken(service: Service) -> None:
    answer = await post(service, lines({"problem_id": ids(service)[0], "code": "print()"}))
    run = await service.run(answer.json()["run_id"])
    capacity = service.services.fleet.capacity()
    assert capacity is not None
    fitting = [
        kind
        for kind in map(service.settings.instance_type, service.settings.instance_types)
        if kind.vcpu <= capacity.vcpu and kind.memory_bytes <= capacity.memory_bytes
    ]
    assert run["instance_type"] == max(fitting, key=lambda kind: kind.vcpu).name


async def test_a_run_is_graded_again_and_says_what_moved(service: Service) -> None:
    service.engine.behaviour = Looking("wrong_answer")
    old = await service.new_run(samples_per_problem=2)
    await service.until(old, "completed")
    looking = service.engine.behaviour = Looking("passed")
    answer = await service.client.post(f"/api/container-runs/{old}/regrade")
    assert answer.status_code == 202, answer.text
    new = answer.json()["run_id"]
    run = await service.until(new, "completed")
    assert (run["kind"], run["retry_of"], run["trigger_type"], run["model"], run["cost_usd"]) == (
        "grade",
        old,
        "regrade",
        "demo-strong",
        0,
    )
    assert {answer["text"] for p in looking.problems for answer in p["given"]} == {"text"}
    moves = (await service.client.get(f"/api/container-runs/{new}/moves")).json()["items"]
    assert len(moves) == 6
    assert {(move["before"], move["after"], move["parity_after"]) for move in moves} == {
        ("wrong_answer", "passed", "passed")
    }
    assert (await service.client.get(f"/api/container-runs/{old}/moves")).status_code == 409
    scored = await service.services.db.read(lambda s: page_queries.scored(s, per_series=9))
    assert [run.id for run in scored] == [old]  # no second measurement of the model


async def test_a_run_without_answers_cannot_be_graded_again(service: Service) -> None:
    service.engine.behaviour = http_runner
    old = await service.new_run()
    early = await service.client.post(f"/api/container-runs/{old}/regrade")
    await service.until(old, "completed")
    late = await service.client.post(f"/api/container-runs/{old}/regrade")
    assert (early.status_code, late.status_code) == (409, 409)
    assert "no stored answer" in late.json()["detail"]
    assert (await service.client.post("/api/container-runs/nope/regrade")).status_code == 404


async def test_imported_answers_are_their_models_and_on_the_leaderboard(service: Service) -> None:
    service.engine.behaviour = http_runner
    measured = await service.new_run(sample_size=36, benchmarks=["sample"])
    await service.until(measured, "completed")
    service.engine.behaviour = Looking("passed")
    added = await service.client.post("/api/models", json={"slug": "other/m", "provider": "imported", "name": "M"})
    assert added.status_code == 201, added.text
    rows = [{"problem_id": name, "answer": "x"} for name in ids(service)]
    unknown = await post(service, lines(*rows), model="nobody")
    assert (unknown.status_code, "nobody" in unknown.json()["detail"]) == (404, True)
    for model in ("other/m", "demo-strong"):
        answer = await post(service, lines(*rows), model=model)
        assert answer.status_code == 202, answer.text
        run = await service.until(answer.json()["run_id"], "completed")
        assert (run["kind"], run["trigger_type"], run["model"]) == ("grade", "import", model)
    board = (await service.client.get("/api/leaderboard", params={"benchmark": "sample"})).json()
    places = {place["model"]: (place["run_id"] == measured, place["imported"]) for place in board["places"]}
    assert places == {"other/m": (False, True), "demo-strong": (True, False)}


async def test_a_damaged_log_is_refused_with_a_sentence(service: Service) -> None:
    answer = await post(service, b"PK\x03\x04 nothing else", filename="run.eval")
    assert (answer.status_code, "run.eval is cut short or damaged" in answer.json()["detail"]) == (422, True)
