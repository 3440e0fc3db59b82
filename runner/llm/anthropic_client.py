"""Anthropic messages through the `anthropic` SDK, always streamed; the only module that imports it.

The SDK is built on httpx2 and has no arguments for sampling parameters: those that are set go into `extra_body`.
"""

import time
import warnings
from typing import Any

import anthropic
import httpx2

from runner.contract.run_spec import CALL_KEY_HEADER, ModelSpec
from runner.errors import GatewayAway
from runner.llm.client import REPLAYED_HEADER, SILENCE_S, Completion, Finish, Prompt, error_for, gateway_transport

FINISHES = {
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.REFUSAL,
}


LEAST_THINKING = 1024
"""The smallest budget that the provider accepts."""


class AnthropicClient:
    def __init__(self, model: ModelSpec, gateway_url: str, token: str) -> None:
        self._model = model
        self._client = anthropic.AsyncAnthropic(
            api_key=token,
            base_url=f"{gateway_url.rstrip('/')}/{model.provider}",
            timeout=max(model.request_timeout_s, SILENCE_S),
            max_retries=0,
            http_client=anthropic.DefaultAsyncHttpxClient(transport=gateway_transport(), trust_env=False),
        )
        self._options = _options(model)

    async def complete(self, prompt: Prompt, call_key: str) -> Completion:
        began = time.monotonic()
        if self._model.system_prompt:
            prompt = prompt.after(self._model.system_prompt)
        dialogue: list[Any] = [*prompt.earlier, {"role": "user", "content": prompt.user}]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # deprecated models, or models that want another kind of thinking
                call = self._client.messages.stream(
                    model=self._model.name,
                    max_tokens=self._model.max_tokens,
                    system=prompt.system,
                    messages=dialogue,
                    extra_headers={CALL_KEY_HEADER: call_key},
                    **self._options,
                )
            async with call as stream:
                headers = stream.response.headers
                message = await stream.get_final_message()
        except anthropic.APIStatusError as error:
            raise error_for(error.status_code, error.body, error.response.headers, error.message) from error
        except (anthropic.APIError, httpx2.HTTPError) as error:
            raise GatewayAway(f"{type(error).__name__}: {error}") from error
        except AssertionError as error:
            raise GatewayAway("the stream ended before the answer began") from error
        if message.stop_reason is None:
            raise GatewayAway("the stream ended before the answer did")
        usage = message.usage
        details = getattr(usage, "output_tokens_details", None)
        cached, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
        return Completion(
            text="".join(block.text for block in message.content if block.type == "text"),
            thinking="".join(block.thinking for block in message.content if block.type == "thinking"),
            finish=FINISHES.get(message.stop_reason, Finish.OTHER),
            input_tokens=usage.input_tokens + cached + written,
            output_tokens=usage.output_tokens,
            cached_tokens=cached,
            reasoning_tokens=getattr(details, "thinking_tokens", 0) or 0,
            latency_s=time.monotonic() - began,
            replayed=headers.get(REPLAYED_HEADER) in ("1", "true"),
        )

    async def close(self) -> None:
        await self._client.close()


def _options(model: ModelSpec) -> dict[str, Any]:
    options: dict[str, Any] = {}
    sampling = {"temperature": model.temperature, "top_p": model.top_p, "top_k": model.top_k}
    if extra := {name: value for name, value in sampling.items() if value is not None} | model.extra_body:
        options["extra_body"] = extra
    if model.stop:
        options["stop_sequences"] = model.stop
    if model.thinking is False:
        options["thinking"] = {"type": "disabled"}
    elif model.thinking_budget is not None or model.thinking:
        budget = model.thinking_budget or max(LEAST_THINKING, model.max_tokens // 2)
        options["thinking"] = {"type": "enabled", "budget_tokens": budget}
    if model.effort is not None:
        options["output_config"] = {"effort": model.effort}
    return options
