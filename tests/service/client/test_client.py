"""Both clients against the real service: runs, lists, streams, uploads, errors, retries."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.client import BenchyardError, ConnectionFailed, Invalid, NotFound, Retry, Unauthorized, WaitTimeout, models
from tests.benchmark_records.livecodebench import lcb_record
from tests.served import TOKEN, Service
from tests.service.client.flavoured import CutAfter, Flavoured, Watching

pytestmark = pytest.mark.anyio
Make = Callable[..., Flavoured]


@pytest.fixture(params=["blocking", "asynchronous"])
async def make(request: pytest.FixtureRequest, shared_service: Service) -> AsyncIterator[Make]:
    made: list[Flavoured] = []

    def one(**options: Any) -> Flavoured:
        values = {"url": shared_service.url, "token": TOKEN, **options}
        made.append(Flavoured(request.param == "asynchronous", **values))
        return made[-1]

    yield one
    for client in made:
        await client.close()


async def test_a_run_from_its_creation_to_its_items(make: Make) -> None:
    client = make()
    created = await client.call("runs.create", model_id="demo-strong", sample_size=3)
    events = await client.values("runs.events", created.run_id)
    run = await client.call("runs.wait", created.run_id)
    assert isinstance(run, models.RunDetail)
    assert (run.status, run.passed, run.progress.done) == ("completed", 2, 3)
    assert [event.data["status"] for event in events if event.type == "transition"][-1] == "completed"
    items = await client.values("runs.items", created.run_id)
    assert [item.outcome for item in items] == ["passed", "wrong_answer", "passed"]
    exported = b"".join(await client.values("runs.export", created.run_id, format="jsonl"))
    assert len(exported.splitlines()) == 3
    assert (await client.call("runs.score", created.run_id)).benchmarks["sample"]["estimate"] == pytest.approx(2 / 3)


async def test_a_list_is_read_through_all_its_pages(make: Make) -> None:
    asked: list[str] = []
    client = make(transport=Watching(before=lambda request: asked.append(request.url.query.decode())))
    ids = {(await client.call("runs.create", model_id="demo-weak", sample_size=1)).run_id for _ in range(3)}
    batch = await client.values("plain.items", "/api/container-runs", page=2, query={"model_id": None})
    assert ids <= {run["id"] for run in batch}
    assert sum("limit=2" in query for query in asked) == (len(batch) + 1) // 2
    assert len(await client.values("runs.list", limit=2)) == 2
    for run_id in ids:
        await client.call("runs.wait", run_id)


async def test_an_error_has_code_sentence_and_request_id(make: Make) -> None:
    ids: list[str] = []
    client = make(transport=Watching(after=lambda _, response: ids.append(response.headers["x-request-id"])))
    with pytest.raises(NotFound) as missing:
        await client.call("runs.get", "0199")
    assert (missing.value.status, missing.value.code, missing.value.request_id) == (404, "NOT_FOUND", ids[-1])
    assert missing.value.sentence.endswith(".")
    assert ids[-1] in str(missing.value)
    with pytest.raises(Invalid) as wrong:
        await client.call("runs.create", model_id="demo-strong", sample_size=0)
    assert "sample_size" in wrong.value.sentence
    with pytest.raises(Unauthorized):
        await make(token="another").call("runs.get", "x")


async def test_a_request_whose_answer_is_lost_makes_one_run(make: Make) -> None:
    keys: list[str | None] = []

    def lose_the_first(request: httpx.Request, response: httpx.Response) -> None:
        if request.method == "POST":
            keys.append(request.headers.get("idempotency-key"))
            assert response.status_code == 202
            if len(keys) == 1:
                raise httpx.ReadError("the test lost it")

    client = make(transport=Watching(after=lose_the_first))
    before = {run.id for run in await client.values("runs.list")}
    created = await client.call("runs.create", model_id="demo-strong", sample_size=1)
    await client.call("runs.wait", created.run_id)
    assert {run.id for run in await client.values("runs.list")} - before == {created.run_id}
    assert len(keys) == 2
    assert keys[0] is not None
    assert keys[0] == keys[1]


async def test_what_cannot_be_repeated_safely_is_not_repeated(make: Make) -> None:
    sent: list[str] = []

    def lose(request: httpx.Request, _: httpx.Response) -> None:
        sent.append(request.method)
        raise httpx.ReadError("the test lost it")

    client = make(transport=Watching(after=lose))
    with pytest.raises(ConnectionFailed):
        await client.call("tokens.create", name="lost", scope="read")
    assert (sent, client.pauses) == (["POST"], [])


async def test_a_broken_stream_goes_on_after_its_last_event(make: Make) -> None:
    asked: list[str | None] = []

    def cut(request: httpx.Request, response: httpx.Response) -> None:
        if request.url.path.endswith("/stream"):
            asked.append(request.headers.get("last-event-id"))
            if len(asked) <= 2:
                response.stream = CutAfter(response.stream, 2)

    whole, broken = make(), make(transport=Watching(after=cut))
    created = await whole.call("runs.create", model_id="demo-strong", sample_size=5)
    followed = await broken.values("runs.events", created.run_id)
    assert followed == await whole.values("runs.events", created.run_id)
    assert len({event.id for event in followed}) == len(followed) > 5
    assert len(asked) >= 3
    assert asked[0] is None
    assert asked[-1] is not None


async def test_uploads(make: Make, tmp_path: Path, shared_service: Service, request: pytest.FixtureRequest) -> None:
    client, name = make(), f"mine-{request.node.callspec.params['make']}"
    path = tmp_path / "problems.jsonl"
    path.write_text("".join(json.dumps(lcb_record(id_)) + "\n" for id_ in ("a", "b")))
    await client.call("datasets.upload", name, path)
    built = await client.call("datasets.wait", name)
    assert (built.state, built.problems, built.error) == ("done", 2, None)
    first = shared_service.services.catalogue.entries("sample")[0].id
    answers = json.dumps({"question_id": first, "code_list": ["print(1)"]}).encode()
    graded = await client.call("runs.grade", answers, benchmark="sample")
    assert (await client.call("runs.wait", graded.run_id)).kind == "grade"
    await client.call("datasets.delete", name)
    assert name not in {dataset.name for dataset in (await client.call("datasets.overview")).items}


async def test_a_wait_has_its_end(make: Make, shared_service: Service) -> None:
    client = make()
    run_id = (await client.call("runs.create", model_id="demo-strong", sample_size=1, provider="nowhere")).run_id
    with pytest.raises(WaitTimeout, match="has not ended within 0 s"):
        await client.call("runs.wait", run_id, timeout_s=0)
    await client.call("runs.cancel", run_id)
    assert (await client.call("runs.wait", run_id)).status == "cancelled"


class Answering(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Answers of the test's own, for what the service cannot be brought to say."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)  # the cases are used twice

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return self.handle_request(request)


def busy(retry_after: str | None) -> httpx.Response:
    headers = {} if retry_after is None else {"retry-after": retry_after}
    return httpx.Response(503, json={"detail": "not now", "code": "UNAVAILABLE", "request_id": "r"}, headers=headers)


async def test_a_busy_service_is_asked_again_when_it_says(make: Make) -> None:
    answers = Answering(busy("7"), httpx.ConnectError("refused"), httpx.Response(200, json={"items": []}))
    client = make(transport=answers)
    assert await client.values("plain.items", "/api/models") == []
    assert 7 < client.pauses[0] < 8
    assert 0 < client.pauses[1] < 2


@pytest.mark.parametrize(
    ("answers", "attempts"),
    [
        pytest.param([busy("3600")], 4, id="longer than anybody waits"),
        pytest.param([busy("1"), busy("1")], 1, id="once more and no more"),
        pytest.param([httpx.ConnectError("refused")], 0, id="never"),
        pytest.param([httpx.Response(502, text="<html>")], 4, id="a proxy"),
        pytest.param([httpx.Response(200, text="hello")], 4, id="a stranger"),
    ],
)
async def test_giving_up_is_an_error(make: Make, answers: list[httpx.Response | Exception], attempts: int) -> None:
    transport = Answering(*answers)
    with pytest.raises(BenchyardError):
        await make(transport=transport, retry=Retry(attempts)).call("runs.get", "x")
    assert transport.answers == []
