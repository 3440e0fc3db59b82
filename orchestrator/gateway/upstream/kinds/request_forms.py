"""The form in which a server accepts requests. Pure.

Servers with the same protocol refuse different parameters: one takes only `max_tokens`, another only
`max_completion_tokens`, a third neither streams nor knows `stream_options`. A refusal that names a parameter teaches the
other form, which `HttpUpstream` then uses for every call to that model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any

from orchestrator.gateway.edge.errors import UpstreamError
from orchestrator.gateway.protocols.protocol import Message
from runner.contract.run_spec import ErrorScope, Protocol

REFUSALS = frozenset({400, 405, 415, 422, 501})


class Adjustment(StrEnum):
    """A change to every request for a model."""

    MAX_TOKENS = "max_tokens"  #: the token limit is called `max_tokens`
    MAX_COMPLETION_TOKENS = "max_completion_tokens"  #: the token limit is called `max_completion_tokens`
    NO_STREAM_OPTIONS = "no_stream_options"  #: without `stream_options`; the server may then not report its usage
    NO_STREAM = "no_stream"  #: the answer comes in one piece
    NO_TEMPERATURE = "no_temperature"  #: without the temperature that the run asks for
    NO_TOP_P = "no_top_p"  #: without the top_p that the run asks for
    RANDOM_SEED = "random_seed"  #: the seed is called `random_seed`


SENTENCES = {
    Adjustment.MAX_TOKENS: "sends the token limit as max_tokens: the server refuses or ignores max_completion_tokens",
    Adjustment.MAX_COMPLETION_TOKENS: "sends the token limit as max_completion_tokens: the server refuses max_tokens",
    Adjustment.NO_STREAM_OPTIONS: "leaves out stream_options, which the server refuses",
    Adjustment.NO_STREAM: "does not stream, because the server refuses to",
    Adjustment.NO_TEMPERATURE: "leaves out the temperature, which the server refuses: it uses its own",
    Adjustment.NO_TOP_P: "leaves out top_p, which the server refuses: it uses its own",
    Adjustment.RANDOM_SEED: "sends the seed as random_seed",
}

_SAMPLING = {"temperature": Adjustment.NO_TEMPERATURE, "top_p": Adjustment.NO_TOP_P}
_OTHER_FORMS: Mapping[Protocol, Mapping[str, Adjustment]] = {
    Protocol.OPENAI_CHAT: {
        "stream_options": Adjustment.NO_STREAM_OPTIONS,
        "max_completion_tokens": Adjustment.MAX_TOKENS,
        "max_tokens": Adjustment.MAX_COMPLETION_TOKENS,
        **_SAMPLING,
        "stream": Adjustment.NO_STREAM,
    },
    Protocol.OPENAI_RESPONSES: {**_SAMPLING, "stream": Adjustment.NO_STREAM},
    Protocol.ANTHROPIC: _SAMPLING,
}
"""For each parameter that a server may refuse, the adjustment that avoids it."""
_RENAMED = {
    Adjustment.MAX_TOKENS: ("max_completion_tokens", "max_tokens"),
    Adjustment.MAX_COMPLETION_TOKENS: ("max_tokens", "max_completion_tokens"),
    Adjustment.RANDOM_SEED: ("seed", "random_seed"),
}
_OPPOSITES = {
    Adjustment.MAX_TOKENS: Adjustment.MAX_COMPLETION_TOKENS,
    Adjustment.MAX_COMPLETION_TOKENS: Adjustment.MAX_TOKENS,
}
_TOKEN_LIMITS = frozenset({"max_tokens", "max_completion_tokens"})
_LEFT_OUT = {
    Adjustment.NO_STREAM_OPTIONS: ("stream_options",),
    Adjustment.NO_STREAM: ("stream", "stream_options"),
    Adjustment.NO_TEMPERATURE: ("temperature",),
    Adjustment.NO_TOP_P: ("top_p",),
}
_ABOUT_THE_VALUE = re.compile(
    r"too (large|long|high|small|low|many)|exceed|context (length|window|size)|at (most|least) |(greater|less|more) than"
    r"|must be <=|out of range|between ",
    re.IGNORECASE,
)
_NO_STREAMING = re.compile(
    r"\bstream(ing)?\b[^.]{0,80}\b(not|unsupported|disabled|cannot|verified|unavailable)\b|\b(not|cannot|no)\b[^.]{0,60}\bstream",
    re.IGNORECASE,
)


def adjusted(body: Message, adjustments: Collection[Adjustment]) -> Message:
    """The request in the form that the server accepts."""
    body = dict(body)
    for adjustment in adjustments:
        if adjustment in _RENAMED:
            name, other = _RENAMED[adjustment]
            if name in body:
                body.setdefault(other, body[name])
                del body[name]
        for name in _LEFT_OUT.get(adjustment, ()):
            body.pop(name, None)
    return body


def refused_parameter(protocol: Protocol, body: Message, error: UpstreamError) -> str | None:
    """The parameter of this request that the server refuses and that has another form; None for any other error."""
    if error.status not in REFUSALS or error.scope is ErrorScope.ITEM:
        return None
    sent = [name for name in _OTHER_FORMS[protocol] if name in body]
    text = f"{error.message} {_as_text(error.body)}"
    if _ABOUT_THE_VALUE.search(text):
        sent = [name for name in sent if name not in _TOKEN_LIMITS]
    parameter = (error.body or {}).get("param")
    if parameter in sent:
        return str(parameter)
    return next((name for name in sent if _names(text, name)), None)


def _names(text: str, parameter: str) -> bool:
    if parameter == "stream":  # a common word, so it must be said to be refused
        return _NO_STREAMING.search(text) is not None
    return re.search(rf"(?<![A-Za-z_]){parameter}(?![A-Za-z_])", text) is not None


def other_form(
    protocol: Protocol, parameter: str, form: frozenset[Adjustment], known: frozenset[Adjustment]
) -> frozenset[Adjustment] | None:
    """The form to try after a refusal of this parameter; None if all have been tried. `known` was learned before this call,
    and servers change."""
    adjustment = _OTHER_FORMS[protocol][parameter]
    opposite = _OPPOSITES.get(adjustment)
    if opposite is not None and opposite in form:
        return form - {opposite} if opposite in known and form == known else None
    return None if adjustment in form else form | {adjustment}


def _as_text(body: Mapping[str, Any] | None) -> str:
    return json.dumps(body, default=str) if body else ""
