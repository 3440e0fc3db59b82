"""Providers that are not like the others: what they send is understood where it can be, and said where it cannot."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import openai
import pytest

from orchestrator.system.zstd import compress
from tests.service.gateway.odd_provider import HELLO, KEY, answer, chunk, odd, stream, used

pytestmark = pytest.mark.anyio

CUT = {
    "a page with an error": answer(("x" * 250 + KEY).encode(), "text/html", "400 Bad Request"),
    "a page instead of an answer": answer(("x" * 150 + KEY).encode(), "text/html"),
    "an event": answer(stream("{" + "x" * 150 + KEY)),
}


@pytest.mark.parametrize("name", CUT)
async def test_a_key_is_taken_out_before_what_was_said_is_cut(name: str) -> None:
    async with odd(CUT[name]) as world:
        with pytest.raises(openai.APIStatusError) as failed:
            await world.ask()
    for place in (failed.value.response.text, repr(world.row)):
        assert "xxx" in place
        assert KEY[:12] not in place


async def test_a_key_in_a_header_of_the_operators_own_is_taken_out() -> None:
    error = answer(b'{"error": {"message": "bad key swordfish-1 of app Benchyard"}}', "application/json", "401 Unauthorized")
    headers = {"X-Auth": "Bearer swordfish-1", "X-Title": "Benchyard"}
    async with odd(error, api_key="", headers=headers) as world:
        with pytest.raises(openai.AuthenticationError, match=r"bad key \[key\] of app Benchyard"):
            await world.ask()


async def test_an_answer_with_the_word_that_stands_for_a_key_is_left_as_it_is() -> None:
    """Servers without keys are given some word."""
    headers = {"X-Title": "a benchmark"}
    said = answer(stream(chunk({"content": "x = EMPTY  # a benchmark"}, "stop")))
    async with odd(said, api_key="EMPTY", headers=headers) as world:
        assert await world.ask() == "x = EMPTY  # a benchmark"


async def test_an_error_that_no_database_could_store_is_made_storable() -> None:
    error = answer(b'{"error": {"message": "half a letter \\ud800, none at all \\u0000."}}', "application/json", "400 Bad")
    async with odd(error, answer(HELLO)) as world:
        with pytest.raises(openai.BadRequestError) as failed:
            await world.ask()
        assert "half a letter ?" in failed.value.message
        assert "\0" not in world.row.error
        assert world.row.error.encode()


USED: dict[str, tuple[dict[str, Any], tuple[int, int, bool]]] = {
    "reasoning beside the completion": (
        {
            "prompt_tokens": 32,
            "completion_tokens": 9,
            "total_tokens": 135,
            "completion_tokens_details": {"reasoning_tokens": 94},
        },
        (32, 103, False),
    ),
    "reasoning in the total only": ({"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135}, (32, 103, False)),
    "no total": ({"prompt_tokens": 32, "completion_tokens": 9}, (32, 9, False)),
    "with a decimal point": ({"prompt_tokens": 3.0, "completion_tokens": 2.0}, (3, 2, False)),
    "strange details": (
        {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": [1], "completion_tokens_details": "x"},
        (3, 2, False),
    ),
    "nothing": ({}, (0, 1, True)),
    "noughts": ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, (0, 1, True)),
    "more than there is": ({"prompt_tokens": 10**30, "completion_tokens": 10**30}, (0, 1, True)),
}


@pytest.mark.parametrize("name", USED)
async def test_what_was_used_is_known_or_estimated_but_never_left_out(name: str) -> None:
    usage, (asked, answered, estimated) = USED[name]
    async with odd(answer(stream(chunk({"content": "Hello"}, "stop"), used(**usage)))) as world:
        assert await world.ask() == "Hello"
    found = world.row.settlement.usage
    assert found.estimated is estimated
    assert found.input_tokens == asked
    assert found.output_tokens == answered if not estimated else found.output_tokens >= answered


WHOLE = {"id": "c1", "object": "chat.completion", "choices": []}
LOST = {"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "error"}
TOO_LONG = {"object": "error", "message": "it is too long", "type": "BadRequestError", "code": 400}
BEGUN = chunk({"role": "assistant", "content": "Hel"})
ERRORS_IN_200 = {
    "a choice with an error": (
        json.dumps({**WHOLE, "choices": [LOST | {"error": {"code": 502, "message": "gone"}}]}),
        502,
        4,
    ),
    "a choice that ended with one": (stream(BEGUN, chunk({}, "error")), 500, 4),
    "a text in the stream": (stream(BEGUN, json.dumps({"error": "the runner has stopped"})), 500, 4),
    "a text": (json.dumps({"error": "the model is not there"}), 500, 4),
    "an object": (stream(json.dumps(TOO_LONG)), 400, 1),
    "an event of its own": (b'event: error\ndata: {"message": "it died", "code": 503}\n\n', 503, 2),
    "a refused key": (
        stream(json.dumps({"error": {"message": "bad", "type": "invalid_request_error", "code": "invalid_api_key"}})),
        401,
        1,
    ),
    "a code of its own": (
        stream(json.dumps({"error": {"message": "bad", "type": "invalid_request_error", "code": "string_too_long"}})),
        400,
        1,
    ),
}


@pytest.mark.parametrize("name", ERRORS_IN_200)
async def test_an_error_with_status_200_is_an_error(name: str) -> None:
    said, status, tries = ERRORS_IN_200[name]
    sent = answer(said.encode(), "application/json") if isinstance(said, str) else answer(said)
    async with odd(*[sent] * tries, answer(HELLO)) as world:
        if status == 503:
            assert await world.ask() == "Hello", "less was asked of it, and then it went well"
            assert len(world.asked) == 3
            return
        with pytest.raises(openai.APIStatusError) as failed:
            await world.ask()
        assert failed.value.status_code == status
        assert len(world.asked) == tries
        assert "no reason given" not in failed.value.message


async def test_a_tool_call_without_a_number() -> None:
    calls = [{"id": name, "function": {"name": "f", "arguments": "{}"}} for name in "ab"]
    async with odd(answer(stream(*(chunk({"tool_calls": [call]}) for call in calls), chunk({}, "tool_calls")))) as world:
        await world.ask()
    made = world.row.settlement.message["choices"][0]["message"]["tool_calls"]
    assert [call["id"] for call in made] == ["a", "b"]


BODY = json.dumps(
    {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]}
).encode()
FORMS = {
    "a mark before the text": answer(b"\xef\xbb\xbf" + HELLO),
    "a type in capitals": answer(HELLO, "Text/Event-Stream; Charset=UTF-8"),
    "no type": answer(HELLO, ""),
    "a type that it is not": answer(b": one moment\n\n" + HELLO, "application/json"),
    "not compressed, said in capitals": answer(HELLO, extra="Content-Encoding: Identity\r\n"),
    "gzip": answer(gzip.compress(HELLO), extra="content-encoding: gzip\r\n"),
    "gzip, whole": answer(gzip.compress(BODY), "application/json", extra="Content-Encoding: GZIP\r\n"),
    "deflate": answer(zlib.compress(HELLO), extra="content-encoding: deflate\r\n"),
    "zstd": answer(compress(HELLO), extra="content-encoding: zstd\r\n"),
}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", FORMS)
async def test_an_answer_is_understood_in_whichever_form_it_comes(name: str, streamed: bool) -> None:
    async with odd(FORMS[name]) as world:
        assert await world.ask(streamed=streamed) == "Hello"
    assert len(world.asked) == 1


UNUSABLE = {
    "a bomb": (answer(gzip.compress(b" " * (17 << 20)), "application/json", extra="content-encoding: gzip\r\n"), 1),
    "a bomb of zstd": (answer(compress(b" " * (17 << 20)), "application/json", extra="content-encoding: zstd\r\n"), 1),
    "another compression": (answer(HELLO, extra="content-encoding: br\r\n"), 1),
    "not compressed after all": (answer(HELLO, extra="content-encoding: gzip\r\n"), 4),
    "cut": (answer(gzip.compress(HELLO)[:-40], extra="content-encoding: gzip\r\n"), 4),
}


@pytest.mark.parametrize("name", UNUSABLE)
async def test_what_cannot_be_decompressed_is_said_and_bought_again_only_where_that_may_help(name: str) -> None:
    sent, tries = UNUSABLE[name]
    async with odd(sent) as world:
        with pytest.raises(openai.InternalServerError):
            await world.ask()
    assert len(world.asked) == tries


async def test_an_error_that_comes_compressed_is_read() -> None:
    error = gzip.compress(b'{"error": {"message": "pay first", "code": "insufficient_quota"}}')
    async with odd(answer(error, "application/json", "429 Too Many", "content-encoding: gzip\r\n")) as world:
        with pytest.raises(openai.PermissionDeniedError, match="pay first"):
            await world.ask()
    assert len(world.asked) == 1
