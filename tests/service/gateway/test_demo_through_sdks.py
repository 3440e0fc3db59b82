"""The demo provider, asked by the real SDKs over all three protocols, streamed and not."""

from __future__ import annotations

import anthropic
import httpx
import openai
import pytest

from orchestrator.gateway.demo.provider import UNKNOWN_PROMPT
from tests.service.gateway.gateway_parts import DEMO, TOKEN, gateway, key, run_context

pytestmark = pytest.mark.anyio

FIRST = DEMO.by_text["Add two numbers.", 0]
SECOND = DEMO.by_text["Add two numbers.", 1]
PROMPT = "You are given a problem.\n\nAdd two numbers.\n"


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_anthropic_messages(streamed: bool) -> None:
    async with gateway(run_context()) as world, world.anthropic() as client:
        question = {"model": "demo-strong", "max_tokens": 999, "messages": user(PROMPT), "system": "Be brief."}
        if streamed:
            async with client.messages.stream(**question, extra_headers=key("sample/add/1/0")) as stream:
                text = "".join([piece async for piece in stream.text_stream])
                message = await stream.get_final_message()
            assert text == SECOND.text
        else:
            message = await client.messages.create(**question, extra_headers=key("sample/add/1/0"))
        assert [block.type for block in message.content] == ["thinking", "text"]
        assert message.content[0].thinking == SECOND.thinking
        assert message.content[1].text == SECOND.text
        assert message.stop_reason == "end_turn"
        assert (message.usage.input_tokens, message.usage.output_tokens) == (11, 7)
        assert message.model == "demo-strong"


@pytest.mark.parametrize("form", ["whole", "streamed", "helper"])
async def test_openai_chat(form: str) -> None:
    async with gateway(run_context()) as world, world.openai() as client:
        question = {"model": "demo-strong", "messages": user(PROMPT), "extra_headers": key("sample/add/0/0")}
        if form == "whole":
            completion = await client.chat.completions.create(**question)
            text, finish, usage = (
                completion.choices[0].message.content,
                completion.choices[0].finish_reason,
                completion.usage,
            )
        elif form == "streamed":
            stream = await client.chat.completions.create(**question, stream=True, stream_options={"include_usage": True})
            chunks = [chunk async for chunk in stream]
            text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
            finish, usage = chunks[-2].choices[0].finish_reason, chunks[-1].usage
        else:
            async with client.chat.completions.stream(**question, stream_options={"include_usage": True}) as stream:
                completion = await stream.get_final_completion()
            text, finish, usage = (
                completion.choices[0].message.content,
                completion.choices[0].finish_reason,
                completion.usage,
            )
        assert text == FIRST.text
        assert finish == "stop"
        assert usage is not None
        assert (usage.prompt_tokens, usage.completion_tokens) == (11, 7)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("sample", [0, 1])
async def test_openai_responses(streamed: bool, sample: int) -> None:
    recorded = DEMO.by_text["Add two numbers.", sample]
    async with gateway(run_context()) as world, world.openai() as client:
        question = {
            "model": "demo-strong",
            "input": user(PROMPT),
            "instructions": "Be brief.",
            "extra_headers": key(f"sample/add/{sample}/0"),
        }
        if streamed:
            async with client.responses.stream(**question) as stream:
                deltas = [event.delta async for event in stream if event.type == "response.output_text.delta"]
                response = await stream.get_final_response()
            assert "".join(deltas) == recorded.text
        else:
            response = await client.responses.create(**question)
        assert response.output_text == recorded.text
        assert response.status == "completed"
        assert response.usage is not None
        assert (response.usage.input_tokens, response.usage.output_tokens) == (11, 7)
        assert [item.type for item in response.output] == (["reasoning", "message"] if recorded.thinking else ["message"])


async def test_truncation_is_said_in_each_protocol() -> None:
    async with gateway(run_context()) as world, world.anthropic() as claude, world.openai() as gpt:
        message = await claude.messages.create(
            model="demo-strong", max_tokens=9, messages=user("Cut short."), extra_headers=key("s/p/0/0")
        )
        completion = await gpt.chat.completions.create(
            model="demo-strong", messages=user("Cut short."), extra_headers=key("s/p/0/1")
        )
        stream = await gpt.responses.create(
            model="demo-strong", input="Cut short.", extra_headers=key("s/p/0/2"), stream=True
        )
        last = [event async for event in stream][-1]
    assert message.stop_reason == "max_tokens"
    assert completion.choices[0].finish_reason == "length"
    assert last.type == "response.incomplete"
    assert last.response.incomplete_details.reason == "max_output_tokens"


async def test_an_unknown_prompt_is_answered_honestly() -> None:
    async with gateway(run_context()) as world, world.anthropic() as client:
        message = await client.messages.create(
            model="demo-strong", max_tokens=9, messages=user("Who are you?"), extra_headers=key("s/p/0/0")
        )
    assert message.content[0].text == UNKNOWN_PROMPT


async def test_x_api_key_is_accepted_too() -> None:
    async with gateway(run_context()) as world, httpx.AsyncClient() as http:
        answer = await http.post(
            f"{world.base('demo')}/v1/messages",
            json={"model": "demo-strong", "max_tokens": 9, "messages": user(PROMPT)},
            headers={"x-api-key": TOKEN, **key("s/p/0/0")},
        )
    assert answer.status_code == 200
    assert answer.headers["x-benchyard-finish"] == "stop"


async def test_no_token_is_refused() -> None:
    async with gateway(run_context()) as world, httpx.AsyncClient() as http:
        answer = await http.post(f"{world.base('demo')}/v1/messages", json={})
    assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHORIZED")


async def test_a_foreign_token_is_refused_in_the_providers_own_words() -> None:
    async with (
        gateway(run_context()) as world,
        world.anthropic(token="wrong") as claude,
        world.openai(token="wrong") as gpt,
    ):
        with pytest.raises(anthropic.AuthenticationError) as refused:
            await claude.messages.create(model="demo-strong", max_tokens=9, messages=user("x"))
        with pytest.raises(openai.AuthenticationError) as refused_too:
            await gpt.chat.completions.create(model="demo-strong", messages=user("x"))
    assert refused.value.type == "authentication_error"
    assert refused.value.error_code == "UNAUTHORIZED"
    assert refused_too.value.code == "UNAUTHORIZED"
    assert refused_too.value.response.headers["x-benchyard-code"] == "UNAUTHORIZED"


@pytest.mark.parametrize(
    ("provider", "model", "headers", "error", "code"),
    [
        ("demo", "demo-weak", key("s/p/0/0"), anthropic.PermissionDeniedError, "FORBIDDEN"),
        ("anthropic", "demo-strong", key("s/p/0/0"), anthropic.PermissionDeniedError, "FORBIDDEN"),
        ("demo", "demo-strong", {}, anthropic.BadRequestError, "VALIDATION_ERROR"),
        ("demo", "demo-strong", key("k" * 401), anthropic.BadRequestError, "VALIDATION_ERROR"),
    ],
    ids=["another model", "another provider", "no call key", "huge call key"],
)
async def test_only_the_runs_own_model_under_a_key(
    provider: str, model: str, headers: dict[str, str], error: type[anthropic.APIStatusError], code: str
) -> None:
    async with gateway(run_context()) as world, world.anthropic(provider) as client:
        with pytest.raises(error) as refused:
            await client.messages.create(model=model, max_tokens=9, messages=user("x"), extra_headers=headers)
    assert refused.value.error_code == code


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1]",
        b'{"model": "demo-strong"}',
        b'{"a": NaN}',
        b"[" * 100_000,
        b'{"model": 1, "messages": []}',
        b"\xff",
    ],
    ids=["empty", "cut", "list", "no messages", "NaN", "deep", "types", "not utf-8"],
)
async def test_bad_bodies_are_told_so(body: bytes) -> None:
    async with gateway(run_context()) as world, httpx.AsyncClient() as http:
        for path in ("messages", "chat/completions", "responses"):
            answer = await http.post(
                f"{world.base('demo')}/v1/{path}", content=body, headers={"x-api-key": TOKEN, **key("s/p/0/0")}
            )
            assert answer.status_code == 400
            assert answer.json()["code"] == "VALIDATION_ERROR"


async def test_an_oversize_body_is_refused() -> None:
    async with gateway(run_context()) as world, httpx.AsyncClient() as http:
        answer = await http.post(
            f"{world.base('demo')}/v1/messages", content=b" " * (16 << 20) + b"{}", headers={"x-api-key": TOKEN}
        )
    assert answer.status_code == 413
