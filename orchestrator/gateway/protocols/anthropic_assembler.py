"""Puts an Anthropic message stream together, block by block; fields not known here are kept as they came."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.gateway.protocols.protocol import BadStream, Message, StreamedError
from orchestrator.gateway.protocols.sse import Event

_GROWS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}

_PARTS = ("content_block_start", "content_block_delta", "content_block_stop", "message_delta")


class AnthropicAssembler:
    def __init__(self) -> None:
        self.size = 0
        self._message: Message | None = None
        self._blocks: dict[int, Message] = {}
        self._growing: dict[tuple[int, str], list[str]] = {}
        self._stopped = False

    @property
    def complete(self) -> bool:
        return self._stopped

    @property
    def over(self) -> bool:
        return self._stopped

    def feed(self, event: Event) -> None:
        if event.name == "ping":
            return
        self.size += 0 if event.name == "content_block_delta" else len(event.data)
        try:
            data = json.loads(event.data)
            kind = data["type"]
            if kind == "error":
                raise StreamedError(str(data["error"].get("type", "api_error")), data["error"])
            self._take(kind, data)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BadStream("an event that cannot be read", event.data) from error

    def message(self) -> Message:
        if self._message is None:
            raise BadStream("the stream has no message_start")
        for (index, field), parts in self._growing.items():
            text, block = "".join(parts), self._blocks[index]
            if field != "partial_json":
                block[field] = block.get(field, "") + text
            elif text:
                try:
                    block["input"] = json.loads(text)
                except (ValueError, RecursionError):
                    block["input"] = {"INVALID_JSON": text}
        self._growing.clear()
        return {**self._message, "content": [self._blocks[index] for index in sorted(self._blocks)]}

    def _take(self, kind: str, data: Message) -> None:
        if kind == "message_start":
            self._message = {**data["message"], "content": []}
            self._message["usage"] = dict(self._message.get("usage") or {})
        elif kind == "message_stop":
            self._stopped = True
        elif self._message is None:
            if kind not in _PARTS:
                return  # a ping, or something new
            raise BadStream(f"{kind} came before message_start")
        elif kind == "content_block_start":
            self._blocks[data["index"]] = dict(data["content_block"])
        elif kind == "content_block_delta":
            self._delta(data["index"], data["delta"])
        elif kind == "message_delta":
            self._message.update(data.get("delta") or {})
            self._message["usage"].update({k: v for k, v in (data.get("usage") or {}).items() if v is not None})

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        block, kind = self._blocks[index], delta["type"]
        if kind in _GROWS:
            text = delta[_GROWS[kind]]
            self._growing.setdefault((index, _GROWS[kind]), []).append(text)
            self.size += len(text)
        elif kind == "signature_delta":
            block["signature"] = delta["signature"]
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta["citation"]]
            self.size += len(json.dumps(delta))
