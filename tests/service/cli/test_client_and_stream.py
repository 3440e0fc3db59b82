"""The client against a service that misbehaves: problems, strangers, broken streams."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from orchestrator.cli.api.client import Client
from orchestrator.cli.api.connection import Connection
from orchestrator.cli.api.stream import Followers, StreamEnd
from orchestrator.cli.errors import CliError, NotReachable, Refused

Handler = Callable[[httpx.Request], httpx.Response]


def client_of(
    handler: Handler, sleep: Callable[[float], None] = lambda _: None, monotonic: Callable[[], float] = time.monotonic
) -> Client:
    connection = Connection("http://127.0.0.1:8000", "t")
    return Client(connection, httpx.MockTransport(handler), sleep=sleep, monotonic=monotonic)


def problem(status: int, detail: str) -> httpx.Response:
    body = {"detail": detail, "code": "X", "status": status}
    return httpx.Response(status, json=body, headers={"content-type": "application/problem+json"})


def sse(number: int, type_: str, **data: object) -> str:
    return f"id: {number}\nevent: {type_}\ndata: {json.dumps(data)}\n\n"


def stream_of(content: str | Iterator[bytes]) -> httpx.Response:
    return httpx.Response(200, content=content, headers={"content-type": "text/event-stream; charset=utf-8"})


END = "event: end\ndata: {}\n\n"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        pytest.param(problem(404, "there is no model 'x'; look"), "There is no model 'x'; look.", id="a problem"),
        pytest.param(problem(422, "a\x1b[2Jb."), "A\\x1b[2Jb.", id="with escapes"),
        pytest.param(problem(401, "no token."), "No token. The command takes it from BENCHYARD_TOKEN", id="not signed in"),
        pytest.param(httpx.Response(500, text="<html>"), "is it Benchyard", id="something else"),
        pytest.param(httpx.Response(303, headers={"location": "/login"}), "is it Benchyard", id="a redirect"),
        pytest.param(httpx.Response(200, text="hello"), "is not Benchyard", id="not JSON"),
        pytest.param(httpx.Response(200, json=[1]), "is not Benchyard", id="not an object"),
    ],
)
def test_an_answer_that_is_no_result(answer: httpx.Response, sentence: str) -> None:
    with client_of(lambda _: answer) as client, pytest.raises(CliError) as error:
        client.get("/api/fleet")
    assert sentence in str(error.value)
    assert error.value.exit_code == 1


def test_no_answer_says_how_to_start_it() -> None:
    def refuse(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("[Errno 111] Connection refused")

    with client_of(refuse) as client, pytest.raises(NotReachable) as error:
        client.get("/api/fleet")
    assert "connection refused" in str(error.value)
    assert "`benchyard up`" in str(error.value)
    assert error.value.exit_code == 5


def test_lists_are_read_to_their_end() -> None:
    def pages(request: httpx.Request) -> httpx.Response:
        after = request.url.params.get("after")
        return httpx.Response(200, json={"items": [{"slug": after or "first"}], "next": None if after else "second"})

    with client_of(pages) as client:
        assert [model["slug"] for model in client.pages("/api/models")] == ["first", "second"]


def test_a_broken_stream_is_taken_up_after_the_last_event() -> None:
    seen: list[str | None] = []

    def broken(text: str) -> Iterator[bytes]:
        yield text.encode()
        raise httpx.ReadError("cut")

    answers: list[Callable[[], httpx.Response]] = [
        lambda: stream_of(broken(sse(1, "stage") + sse(2, "progress", done=1))),
        lambda: problem(503, "restarting"),
        lambda: stream_of(sse(3, "progress", done=2)),
        lambda: stream_of(sse(4, "transition", status="completed") + END),
    ]

    def handler(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/stream"):
            return httpx.Response(200, json={"status": "running"})
        seen.append(request.headers.get("last-event-id"))
        return answers.pop(0)()

    pauses: list[float] = []
    with client_of(handler, pauses.append) as client:
        events = list(client.follow("r"))
    assert [event.id for event in events] == ["1", "2", "3", "4"]
    assert seen == [None, "2", "2", "3"]
    assert pauses == [0.25, 0.5, 0.25]


def test_a_stream_that_ends_with_the_run_over_is_the_end() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/stream"):
            return stream_of("")
        return httpx.Response(200, json={"status": "failed"})

    with client_of(handler) as client:
        assert list(client.follow("r")) == []


def test_patience_ends_and_a_refusal_ends_it_at_once() -> None:
    clock = iter(range(0, 1000, 10))

    def away(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("gone")

    with client_of(away, monotonic=lambda: next(clock)) as client, pytest.raises(NotReachable):
        list(client.follow("r", patience_s=60))
    with client_of(lambda _: problem(404, "no run")) as client, pytest.raises(Refused):
        list(client.follow("r"))


def test_followers_report_what_ended_them() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if "/bad/" in request.url.path:
            return problem(404, "no run")
        return stream_of(sse(1, "log") + END)

    followers = Followers(lambda: client_of(handler), ["good", "bad"])
    taken = [followers.take(5) for _ in range(3)]
    ends = {run_id: event.error for run_id, event in filter(None, taken) if isinstance(event, StreamEnd)}
    assert ends["good"] is None
    assert "No run" in str(ends["bad"])
    assert followers.take(0.01) is None


def refusing(_: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("[Errno 111] Connection refused")


def cutting(_: httpx.Request) -> httpx.Response:
    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise httpx.ReadError("gone")

    return httpx.Response(200, content=pieces())


@pytest.mark.parametrize("store", [refusing, cutting, lambda _: httpx.Response(503, text="<Error>SlowDown</Error>")])
def test_an_object_store_that_does_not_give_what_it_holds_is_named_and_not_the_service(store: Handler) -> None:
    def service(request: httpx.Request) -> httpx.Response:
        if request.url.host == "store.test":
            assert "authorization" not in request.headers
            return store(request)
        return httpx.Response(307, headers={"location": "https://store.test/archives/result.tar.gz?X-Amz-Signature=abc"})

    with client_of(service) as client, pytest.raises(CliError, match=r"object store at store\.test") as told:  # noqa: SIM117
        with client.download("/api/container-runs/r-1/archive") as pieces:
            b"".join(pieces)
    assert told.value.exit_code == 1
    assert "abc" not in str(told.value)
