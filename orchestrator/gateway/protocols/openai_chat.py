"""OpenAI chat completions, `POST /v1/chat/completions`: OpenAI's and that of compatible servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.gateway.edge.errors import Code, GatewayError, UpstreamError
from orchestrator.gateway.protocols.protocol import (
    TOKEN_LIMITS,
    Assembler,
    BadStream,
    CallRequest,
    Finish,
    Message,
    PlainReply,
    StreamedError,
    TokenUsage,
    count,
    part_of,
    pieces,
    positive,
    reported_error,
    texts_of,
    unless_empty,
)
from orchestrator.gateway.protocols.sse import COMMENT, Event, encode, parsed
from runner.contract import run_spec

_FINISH = {
    "stop": Finish.STOP,
    "length": Finish.LENGTH,
    "content_filter": Finish.CONTENT_FILTER,
    "tool_calls": Finish.TOOL_USE,
    "function_call": Finish.TOOL_USE,
    "refusal": Finish.REFUSAL,
    "max_tokens": Finish.LENGTH,
    "model_length": Finish.CONTEXT_WINDOW,
}
_FINISH_REASON = {Finish.LENGTH: "length", Finish.CONTENT_FILTER: "content_filter", Finish.REFUSAL: "stop"}
_CHUNK_FIELDS = ("id", "created", "model", "service_tier", "system_fingerprint")
_GROWING = ("reasoning_content", "reasoning", "content", "refusal")


class OpenAIChat:
    protocol = run_spec.Protocol.OPENAI_CHAT
    path = "/v1/chat/completions"
    last_words: tuple[bytes, ...] = (b"[DONE]", b'"error"')

    def read(self, body: Message) -> CallRequest:
        messages = body.get("messages")
        if not isinstance(body.get("model"), str) or not isinstance(messages, list):
            raise ValueError("a request needs `model` and `messages`")
        limit = positive(body, *TOKEN_LIMITS)
        return CallRequest(
            body["model"], body.get("stream") is True, "\n".join(texts_of(messages)), limit, positive(body, "n") or 1
        )

    def outgoing(self, body: Message) -> Message:
        options = body.get("stream_options")
        return {
            **body,
            "stream": True,
            "stream_options": {**(options if isinstance(options, dict) else {}), "include_usage": True},
        }

    def assembler(self) -> Assembler:
        return ChatAssembler()

    def check(self, message: Message) -> None:
        if (error := reported_error(message)) is not None:
            raise error
        choices = message.get("choices")
        if not isinstance(choices, list) or not choices:
            raise BadStream("the answer is not a chat completion")
        if not all(isinstance(choice, dict) and isinstance(choice.get("message"), dict) for choice in choices):
            raise BadStream("the answer has a choice without a message")
        if (error := choice_error(choices[0])) is not None:
            raise error

    def stream(self, message: Message, body: Message) -> Iterator[bytes]:
        options = body.get("stream_options")
        with_usage = isinstance(options, dict) and options.get("include_usage") is True
        base: Message = {"object": "chat.completion.chunk"} | {k: message[k] for k in _CHUNK_FIELDS if k in message}
        if with_usage:
            base["usage"] = None
        for choice in message["choices"]:
            index = choice.get("index", 0)
            for delta in _deltas(choice["message"]):
                yield encode(
                    {**base, "choices": [{"index": index, "delta": delta, "logprobs": None, "finish_reason": None}]}
                )
            last = {"index": index, "delta": {}, "logprobs": choice.get("logprobs")}
            yield encode({**base, "choices": [{**last, "finish_reason": choice.get("finish_reason")}]})
        if with_usage:
            yield encode({**base, "choices": [], "usage": message.get("usage")})
        yield encode("[DONE]")

    def usage(self, message: Message) -> TokenUsage | None:
        return token_usage(message, "prompt_tokens", "completion_tokens")

    def finish(self, message: Message) -> Finish:
        choice = message["choices"][0]
        if choice["message"].get("refusal"):
            return Finish.REFUSAL
        return _FINISH.get(str(choice.get("finish_reason")), Finish.OTHER)

    def compose(self, reply: PlainReply) -> Message:
        usage = reply.usage
        answer: Message = {"role": "assistant", "content": reply.text, "refusal": None}
        if reply.finish is Finish.REFUSAL:
            answer |= {"content": None, "refusal": reply.text}
        if reply.thinking:
            answer["reasoning_content"] = reply.thinking
        reason = _FINISH_REASON.get(reply.finish, "stop")
        return {
            "id": f"chatcmpl-{reply.id}",
            "object": "chat.completion",
            "created": reply.created,
            "model": reply.model,
            "choices": [{"index": 0, "message": answer, "logprobs": None, "finish_reason": reason}],
            "usage": {
                "prompt_tokens": usage.input_tokens,
                "completion_tokens": usage.output_tokens,
                "total_tokens": usage.input_tokens + usage.output_tokens,
                "prompt_tokens_details": {"cached_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            },
        }

    def error_body(self, error: GatewayError) -> Message:
        return error_body(error)

    def error_event(self, error: GatewayError) -> bytes:
        return encode(stream_error(error))

    def ping(self) -> bytes:
        return COMMENT


def _deltas(message: Message) -> Iterator[dict[str, Any]]:
    """Split a message into the deltas of a stream: role, text in pieces, tool calls, then the remaining fields whole."""
    rest = {k: v for k, v in message.items() if k not in ("role", "tool_calls", *_GROWING) and v is not None}
    content = "" if isinstance(message.get("content"), str) else None
    yield {"role": message.get("role", "assistant"), "content": content, "refusal": None} | rest
    for field in _GROWING:
        if isinstance(message.get(field), str):
            for piece in pieces(message[field]):
                yield {field: piece}
    for index, call in enumerate(message.get("tool_calls") or []):
        yield {"tool_calls": [{**call, "index": index}]}


_HEAD = ("id", "created", "model", "service_tier", "system_fingerprint")


class ChatAssembler:
    def __init__(self) -> None:
        self.size = 0
        self._head: Message = {}
        self._choices: dict[int, _Choice] = {}
        self._usage: Any = None
        self._done = False

    @property
    def complete(self) -> bool:
        """Whether every choice has its finish reason; not all servers send `[DONE]`."""
        return bool(self._choices) and all(choice.finish_reason is not None for choice in self._choices.values())

    @property
    def over(self) -> bool:
        return self._done

    def feed(self, event: Event) -> None:
        if event.data.startswith("[DONE]"):
            self._done = True
            return
        try:
            data = parsed(event.data)
            self._take(data if event.name != "error" or "error" in data else {"error": data})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BadStream("an event that cannot be read", event.data) from error

    def message(self) -> Message:
        choices = [self._choices[index].whole(index) for index in sorted(self._choices)]
        return {"object": "chat.completion", **self._head, "choices": choices, "usage": self._usage}

    def _take(self, chunk: Message) -> None:
        if (chunk.get("error") or chunk.get("object") == "error") and (error := reported_error(chunk)) is not None:
            raise error
        for name in _HEAD:
            if (value := chunk.get(name)) is not None:
                self._head[name] = value
        if chunk.get("usage") is not None:
            self._usage = chunk["usage"]
        for choice in chunk.get("choices") or []:
            if (choice.get("error") or choice.get("finish_reason")) and (error := choice_error(choice)) is not None:
                raise error
            index = choice.get("index", 0)
            if (kept := self._choices.get(index)) is None:
                kept = self._choices[index] = _Choice()
            self.size += kept.take(choice)


def choice_error(choice: Message) -> StreamedError | None:
    """A choice that ended with an error is no answer: OpenRouter sends one if the server behind it failed."""
    if choice.get("error"):
        return reported_error(choice)
    return reported_error({"error": "the choice ended with an error"}) if choice.get("finish_reason") == "error" else None


class _Choice:
    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self._texts: dict[str, list[str]] = {}
        self._fields: Message = {"role": "assistant", "content": None}
        self._calls: dict[int, Message] = {}
        self._logprobs: Message | None = None

    def take(self, choice: Message) -> int:
        """Apply one delta; returns by how much the answer grew."""
        size = 0
        if choice.get("finish_reason") is not None:
            self.finish_reason = choice["finish_reason"]
        for name, value in (choice.get("delta") or {}).items():
            if name == "tool_calls":
                for call in value or []:
                    size += self._call(call)
            elif isinstance(value, str) and name != "role":
                if (texts := self._texts.get(name)) is None:
                    texts = self._texts[name] = []
                texts.append(value)
                size += len(value)
            elif value is not None:
                self._fields[name] = value
                size += len(str(value))
        if choice.get("logprobs") is not None:
            self._logprobs = self._logprobs or {}
            for name, value in choice["logprobs"].items():
                if isinstance(value, list):
                    self._logprobs.setdefault(name, []).extend(value)
                    size += 64 * len(value)
        return size

    def whole(self, index: int) -> Message:
        message = {**self._fields, **{name: "".join(parts) for name, parts in self._texts.items()}}
        message.setdefault("refusal", None)
        if self._calls:
            message["tool_calls"] = [
                {**call, "function": {**call["function"], "arguments": "".join(call["function"]["arguments"])}}
                for _, call in sorted(self._calls.items())
            ]
        if self._calls or message["refusal"]:
            message["content"] = message["content"] or None
        return {"index": index, "message": message, "logprobs": self._logprobs, "finish_reason": self.finish_reason}

    def _call(self, delta: Message) -> int:
        last = max(self._calls, default=-1)
        index = delta["index"] if "index" in delta else last + 1 if delta.get("id") else max(last, 0)
        call = self._calls.setdefault(index, {"type": "function", "function": {"arguments": []}})
        call |= {k: v for k, v in delta.items() if k not in ("index", "function") and v is not None}
        function = delta.get("function") or {}
        call["function"] |= {k: v for k, v in function.items() if k != "arguments" and v is not None}
        arguments = function.get("arguments") or ""
        call["function"]["arguments"].append(arguments)
        return len(arguments)


_ERROR_TYPE = {
    Code.UNAUTHORIZED: "invalid_request_error",
    Code.PROVIDER_KEY_REFUSED: "invalid_request_error",
    Code.FORBIDDEN: "invalid_request_error",
    Code.NOT_FOUND: "invalid_request_error",
    Code.VALIDATION_ERROR: "invalid_request_error",
    Code.CONFLICT: "invalid_request_error",
    Code.PAYLOAD_TOO_LARGE: "invalid_request_error",
    Code.BUDGET_EXHAUSTED: "insufficient_quota",
    Code.PRICE_UNKNOWN: "insufficient_quota",
    Code.RATE_LIMITED: "rate_limit_exceeded",
}


def error_body(error: GatewayError) -> Message:
    provider_error = error.body if isinstance(error, UpstreamError) else None
    standard = {"type": _ERROR_TYPE.get(error.code, "server_error"), "param": None, "code": error.code}
    details = {"error_code": error.code, "scope": error.scope}
    return {
        "error": {**standard, **(provider_error or {}), "message": error.message, "details": details},
        "code": error.code,
    }


def stream_error(error: GatewayError) -> Message:
    """SDKs keep only the inner object of an error in a stream, so it must contain everything."""
    body = error_body(error)
    body["error"]["status"] = error.status
    return body


def token_usage(message: Message, asked_name: str, answered_name: str) -> TokenUsage | None:
    """The usage of an answer; OpenAI's two protocols differ only in these names."""
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return None
    details, output = part_of(usage, f"{asked_name}_details"), part_of(usage, f"{answered_name}_details")
    prompt, completion = count(usage.get(asked_name)), count(usage.get(answered_name))
    return unless_empty(
        TokenUsage(
            input_tokens=prompt,
            # Some servers leave reasoning out of this count, but include it in the total.
            output_tokens=max(completion, count(usage.get("total_tokens")) - prompt),
            cached_tokens=count(details.get("cached_tokens")) or count(usage.get("prompt_cache_hit_tokens")),  # DeepSeek
            cache_write_tokens=count(details.get("cache_write_tokens")),
            reasoning_tokens=count(output.get("reasoning_tokens")),
        )
    )
