"""OpenAI chat completions and responses through the `openai` SDK, always streamed; the only module that imports it.

It also serves every other provider with the chat protocol. The SDK is built on httpx2.
"""

import time
from typing import Any

import httpx2
import openai

from runner.contract.run_spec import CALL_KEY_HEADER, THINKING_FIELD, ModelSpec, Protocol
from runner.errors import GatewayAway
from runner.llm.client import REPLAYED_HEADER, SILENCE_S, Completion, Finish, Prompt, error_for, gateway_transport

FINISHES = {
    "stop": Finish.STOP,
    "length": Finish.LENGTH,
    "max_output_tokens": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "model_length": Finish.LENGTH,
    "content_filter": Finish.REFUSAL,
    "refusal": Finish.REFUSAL,
}


class OpenAIClient:
    def __init__(self, model: ModelSpec, gateway_url: str, token: str) -> None:
        self._model = model
        self._client = openai.AsyncOpenAI(
            api_key=token,
            base_url=f"{gateway_url.rstrip('/')}/{model.provider}/v1",
            timeout=max(model.request_timeout_s, SILENCE_S),
            max_retries=0,
            http_client=openai.DefaultAsyncHttpx2Client(transport=gateway_transport(), trust_env=False),
        )
        self._options = _options(model)

    async def complete(self, prompt: Prompt, call_key: str) -> Completion:
        if self._model.system_prompt:
            prompt = prompt.after(self._model.system_prompt)
        ask = self._responses if self._model.protocol is Protocol.OPENAI_RESPONSES else self._chat
        try:
            return await ask(prompt, {CALL_KEY_HEADER: call_key}, time.monotonic())
        except openai.APIStatusError as error:
            raise error_for(error.status_code, _whole_body(error), error.response.headers, error.message) from error
        except openai.APIConnectionError as error:
            raise GatewayAway(f"{type(error).__name__}: {error}") from error
        except openai.APIError as error:
            raise error_for(200, error.body, {}, error.message) from error
        except httpx2.HTTPError as error:
            raise GatewayAway(f"{type(error).__name__}: {error}") from error

    async def _chat(self, prompt: Prompt, headers: dict[str, str], began: float) -> Completion:
        text: list[str] = []
        thinking: list[str] = []
        finish: str | None = None
        refused = False
        usage: Any = None
        options: dict[str, Any] = {"reasoning_effort": self._model.effort} if self._model.effort else {}
        stream: openai.AsyncStream[Any] = await self._client.chat.completions.create(
            model=self._model.name,
            messages=_messages(prompt),
            max_completion_tokens=self._model.max_tokens,
            stream=True,
            stream_options={"include_usage": True},
            extra_headers=headers,
            **options,
            **self._options,
        )
        async with stream:
            async for chunk in stream:
                usage = chunk.usage or usage
                for choice in chunk.choices:
                    text.append(choice.delta.content or "")
                    extra = choice.delta.model_extra or {}
                    thinking.append(str(extra.get("reasoning_content") or extra.get("reasoning") or ""))
                    refused = refused or bool(choice.delta.refusal)
                    finish = choice.finish_reason or finish
            replayed = stream.response.headers.get(REPLAYED_HEADER)
        if finish is None:
            raise GatewayAway("the stream ended before the answer did")
        return Completion(
            text="".join(text),
            thinking="".join(thinking),
            finish=Finish.REFUSAL if refused else FINISHES.get(finish, Finish.OTHER),
            **_tokens(usage, "prompt_tokens", "completion_tokens"),
            latency_s=time.monotonic() - began,
            replayed=replayed in ("1", "true"),
        )

    async def _responses(self, prompt: Prompt, headers: dict[str, str], began: float) -> Completion:
        final: Any = None
        effort = self._model.effort or ("none" if self._model.thinking is False else None)
        options: dict[str, Any] = {"reasoning": {"effort": effort}} if effort else {}
        stream: openai.AsyncStream[Any] = await self._client.responses.create(
            model=self._model.name,
            instructions=prompt.system or None,
            input=_dialogue(prompt) if prompt.earlier else prompt.user,
            max_output_tokens=self._model.max_tokens,
            stream=True,
            store=False,
            extra_headers=headers,
            **options,
            **self._options,
        )
        async with stream:
            async for event in stream:
                if event.type in ("response.completed", "response.incomplete", "response.failed"):
                    final = event.response
            replayed = stream.response.headers.get(REPLAYED_HEADER)
        if final is None:
            raise GatewayAway("the stream ended before the answer did")
        if final.status == "failed":
            raise error_for(200, final.error and final.error.model_dump(), {}, "the provider says that the response failed")
        parts = [part for item in final.output if item.type == "message" for part in item.content]
        return Completion(
            text="".join(part.text for part in parts if part.type == "output_text"),
            thinking="\n".join(s.text for item in final.output if item.type == "reasoning" for s in item.summary),
            finish=_finish(final, any(part.type == "refusal" for part in parts)),
            **_tokens(final.usage, "input_tokens", "output_tokens"),
            latency_s=time.monotonic() - began,
            replayed=replayed in ("1", "true"),
        )

    async def close(self) -> None:
        await self._client.close()


def _options(model: ModelSpec) -> dict[str, Any]:
    fields = {"temperature": model.temperature, "top_p": model.top_p, "seed": model.seed, "stop": model.stop or None}
    options = {name: value for name, value in fields.items() if value is not None}
    extra = model.extra_body if model.top_k is None else {"top_k": model.top_k, **model.extra_body}
    if model.chat_template_kwargs:
        extra = {"chat_template_kwargs": model.chat_template_kwargs, **extra}
    if model.thinking is not None and model.protocol is Protocol.OPENAI_CHAT:
        extra = {THINKING_FIELD: model.thinking, **extra}
    if model.protocol is Protocol.OPENAI_RESPONSES:  # without these arguments, but a compatible server may know them
        extra = {name: options.pop(name) for name in ("seed", "stop") if name in options} | extra
    return {**options, "extra_body": extra} if extra else options


def _whole_body(error: openai.APIStatusError) -> object:
    """Returns the complete body: the SDK keeps only the inner `error`, and the gateway's code is outside of it."""
    try:
        return error.response.json()
    except (ValueError, httpx2.StreamError):
        return error.body


def _tokens(usage: Any, input_name: str, output_name: str) -> dict[str, int]:
    """Reads the token counts of either protocol, which differ in names only; missing counts are 0."""
    details = getattr(usage, f"{input_name}_details", None), getattr(usage, f"{output_name}_details", None)
    return {
        "input_tokens": getattr(usage, input_name, 0) or 0,
        "output_tokens": getattr(usage, output_name, 0) or 0,
        "cached_tokens": getattr(details[0], "cached_tokens", 0) or 0,
        "reasoning_tokens": getattr(details[1], "reasoning_tokens", 0) or 0,
    }


def _messages(prompt: Prompt) -> list[Any]:
    system = [{"role": "system", "content": prompt.system}] if prompt.system else []
    return [*system, *_dialogue(prompt)]


def _dialogue(prompt: Prompt) -> list[Any]:
    return [*prompt.earlier, {"role": "user", "content": prompt.user}]


def _finish(response: Any, refused: bool) -> Finish:
    if refused:
        return Finish.REFUSAL
    if response.status == "completed":
        return Finish.STOP
    reason = getattr(response.incomplete_details, "reason", None)
    return FINISHES.get(str(reason), Finish.OTHER)
