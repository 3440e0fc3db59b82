"""Marks what the prompts of a run have in common for Anthropic's prompt cache, where that pays. Pure, but for what it keeps.

https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching: reading from the cache costs a tenth of the input price,
writing a quarter more than it. So nothing is marked before two prompts have shown what they share; then one call writes, and
only when its answer has arrived do the others read. Requests that mark something themselves, or whose content is in parts,
are left alone. The mark is no part of the question: a text is only divided in two, at the end of a paragraph.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from orchestrator.gateway.calls import Call
from orchestrator.gateway.protocols.protocol import Message, TokenUsage

LEAST_CHARS = 4096
"""About the 1,024 tokens below which no model keeps a prompt. Where more are needed, the first answer tells."""
MOST_CHARS = 1 << 18
KEPT_S = 240.0
"""The server keeps a prompt for 5 minutes after its last use."""
MOST_GROUPS = 128
MOST_CHANGES = 8
EPHEMERAL = {"type": "ephemeral"}
Texts = tuple[str, ...]


@dataclass
class _Group:
    """Calls of one run with the same place in their plan, whose prompts may begin alike."""

    last: Texts = ()
    shared: Texts = ()
    """Whole texts, and the beginning of the next one."""
    writer: str = ""
    warm_until: float = 0.0
    changes: int = 0

    @property
    def pays(self) -> bool:
        return self.changes <= MOST_CHANGES


class PromptCache:
    def __init__(self) -> None:
        self._groups: OrderedDict[tuple[str, str, str, str], _Group] = OrderedDict()

    def marked(self, call: Call, body: Message, now: float) -> Message:
        """The body with its mark, if this call is to write or to read."""
        texts = _texts(body)
        group = self._group(call)
        if texts is None or not group.pays:
            return body
        if not (group.shared and _begins(texts, group.shared)):
            shared = _shared(group.last, texts)
            group.last, group.shared = texts, shared
            group.writer, group.warm_until = "", 0.0
            group.changes += bool(shared)
        if not group.shared:
            return body
        if group.warm_until < now:
            if group.writer:
                return body
            group.writer = call.key
        return _with_mark(body, group.shared)

    def answered(self, call: Call, usage: TokenUsage | None, now: float) -> None:
        group = self._group(call)
        if usage is not None and (usage.cached_tokens or usage.cache_write_tokens):
            group.warm_until = now + KEPT_S
        elif group.writer == call.key:
            group.changes = MOST_CHANGES + 1  # too short for this model, or a server without a cache
        self.failed(call)

    def failed(self, call: Call) -> None:
        """Another call may write."""
        group = self._group(call)
        if group.writer == call.key:
            group.writer = ""

    def refused(self, call: Call) -> None:
        self._group(call).changes = MOST_CHANGES + 1

    def _group(self, call: Call) -> _Group:
        benchmark, _, rest = call.key.partition("/")
        name = (call.context.run_id, call.context.model, benchmark, rest.rpartition("/")[2])
        group = self._groups.setdefault(name, _Group())
        self._groups.move_to_end(name)
        if len(self._groups) > MOST_GROUPS:
            self._groups.popitem(last=False)
        return group


def _texts(body: Message) -> Texts | None:
    """The system prompt and the messages; None if one is in parts, or together they are too long to remember."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return None
    texts: list[Any] = [
        body.get("system") or "",
        *(message.get("content") for message in messages if isinstance(message, dict)),
    ]
    if not all(isinstance(text, str) for text in texts) or len(texts) != len(messages) + 1:
        return None
    return tuple(texts) if sum(map(len, texts)) <= MOST_CHARS else None


def _shared(one: Texts, other: Texts) -> Texts:
    """What both begin with, up to the end of a paragraph; nothing if that is too short to be kept."""
    shared: list[str] = []
    for mine, theirs in zip(one, other, strict=False):
        if mine == theirs:
            shared.append(mine)
            continue
        paragraphs = mine.rfind("\n\n", 0, _alike(mine, theirs))
        begin = mine[: paragraphs + 2] if paragraphs >= 0 else ""
        if begin and theirs.startswith(begin) and begin not in (mine, theirs):
            shared.append(begin)
        break
    return tuple(shared) if sum(map(len, shared)) >= LEAST_CHARS else ()


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one.startswith(other[least:middle], least):
            least = middle
        else:
            most = middle - 1
    return least


def _begins(texts: Texts, shared: Texts) -> bool:
    *whole, last = shared
    return len(texts) >= len(shared) and list(texts[: len(whole)]) == whole and texts[len(whole)].startswith(last)


def _with_mark(body: Message, shared: Texts) -> Message:
    at, begin = len(shared) - 1, shared[-1]
    if at == 0:
        text = body["system"]
        return {**body, "system": _parts(text, begin)}
    messages = list(body["messages"])
    messages[at - 1] = {**messages[at - 1], "content": _parts(messages[at - 1]["content"], begin)}
    return {**body, "messages": messages}


def _parts(text: str, begin: str) -> list[Message]:
    rest = text[len(begin) :]
    kept = {"type": "text", "text": begin, "cache_control": EPHEMERAL}
    return [kept, {"type": "text", "text": rest}] if rest else [kept]
