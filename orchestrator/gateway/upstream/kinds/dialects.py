"""Requests and answers of servers whose protocol is not quite the one that the SDKs speak. Pure.

`Dialect` in `kinds` names the differences; the answers become those of the protocol before anything else reads them.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.gateway.protocols.protocol import Message
from orchestrator.gateway.upstream.kinds.converse import chat_completion, converse_request
from orchestrator.gateway.upstream.kinds.table import Dialect, Kind

BETA = "anthropic-beta"
_IN_PATH_OR_HEADERS = frozenset({"model"})


def spoken(kind: Kind, body: Message, headers: Mapping[str, str]) -> Message:
    """The body as the server wants it. Raises `ValueError` with a sentence if it cannot be said there."""
    match kind.dialect:
        case Dialect.CONVERSE:
            return converse_request(body)
        case Dialect.MODEL_IN_PATH:
            said = {name: value for name, value in body.items() if name not in _IN_PATH_OR_HEADERS}
            beta = [part.strip() for part in headers.get(BETA, "").split(",") if part.strip()]
            return {"anthropic_version": kind.version_in_body, **({"anthropic_beta": beta} if beta else {}), **said}
        case Dialect.PLAIN:
            return body


def understood(kind: Kind, answer: Message, model: str) -> Message:
    """The answer in the protocol. Raises `BadStream` if it is none."""
    return chat_completion(answer, model) if kind.dialect is Dialect.CONVERSE and "error" not in answer else answer
