"""Puts a chat completion stream together; texts grow, everything else is kept as it last came."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.gateway.protocols.protocol import BadStream, Message, StreamedError, told_error
from orchestrator.gateway.protocols.sse import Event

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
        """Every choice has said why it ended; servers differ in whether they send `[DONE]`."""
        return bool(self._choices) and all(choice.finish_reason is not None for choice in self._choices.values())

    @property
    def over(self) -> bool:
        return self._done

    def feed(self, event: Event) -> None:
        if event.data.startswith("[DONE]"):
            self._done = True
            return
        try:
            data = json.loads(event.data)
            self._take(data if event.name != "error" or "error" in data else {"error": data})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BadStream("an event that cannot be read", event.data) from error

    def message(self) -> Message:
        choices = [self._choices[index].whole(index) for index in sorted(self._choices)]
        return {"object": "chat.completion", **self._head, "choices": choices, "usage": self._usage}

    def _take(self, chunk: Message) -> None:
        if (error := told_error(chunk)) is not None:
            raise error
        for name in _HEAD:
            if (value := chunk.get(name)) is not None:
                self._head[name] = value
        if chunk.get("usage") is not None:
            self._usage = chunk["usage"]
        for choice in chunk.get("choices") or []:
            if (error := choice_error(choice)) is not None:
                raise error
            self.size += self._choices.setdefault(choice.get("index", 0), _Choice()).take(choice)


def choice_error(choice: Message) -> StreamedError | None:
    """A choice that ended with an error is no answer: OpenRouter's, when the server behind it failed."""
    if choice.get("error"):
        return told_error(choice)
    return told_error({"error": "the choice ended with an error"}) if choice.get("finish_reason") == "error" else None


class _Choice:
    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self._texts: dict[str, list[str]] = {}
        self._fields: Message = {"role": "assistant", "content": None}
        self._calls: dict[int, Message] = {}
        self._logprobs: Message | None = None

    def take(self, choice: Message) -> int:
        """Take one delta; returns how much larger the answer became."""
        size = 0
        if choice.get("finish_reason") is not None:
            self.finish_reason = choice["finish_reason"]
        for name, value in (choice.get("delta") or {}).items():
            if name == "tool_calls":
                for call in value or []:
                    size += self._call(call)
            elif isinstance(value, str) and name != "role":
                self._texts.setdefault(name, []).append(value)
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
