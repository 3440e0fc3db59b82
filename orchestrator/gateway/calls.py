"""A model call, the run that makes it and its answer, as they pass between the parts of the gateway."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from orchestrator.gateway.ledger.prices import Prices
from orchestrator.gateway.protocols.protocol import Asked, Finish, Message, TokenUsage, Wire
from orchestrator.gateway.upstream.credentials import SYSTEM, Payer
from runner.contract import run_spec


@dataclass(frozen=True)
class DayCap:
    """What may be spent on one day: by all, by one workspace, or by one user within it."""

    nusd: int
    workspace_id: int | None = None
    user_id: int | None = None

    @property
    def whose(self) -> str:
        if self.user_id is not None:
            return "of this user for the day"
        return "of the day" if self.workspace_id is None else "of the workspace for the day"


@dataclass(frozen=True)
class RunContext:
    """A living run as the gateway sees it. Only its one model may be called, through its one provider."""

    run_id: str
    attempt: int
    slug: str
    provider: str
    model: str
    prices: Prices | None = None
    budget_nusd: int | None = None
    day_caps: tuple[DayCap, ...] = ()
    request_timeout_s: float = 600.0
    reuse_since: datetime | None = None  #: answers that other runs bought since then may be used again
    payer: Payer = SYSTEM
    no_key: str | None = None  #: why there is no key that this run may use
    plans: Callable[[str], bool] = lambda key: True  #: whether the plan of the run has a call with this key

    @property
    def capped(self) -> bool:
        return self.budget_nusd is not None or bool(self.day_caps)


FORM_FIELDS = frozenset({"stream", "stream_options"})
"""Say how the answer is delivered, not what is asked: the same question, streamed or not, is the same call."""


@dataclass(frozen=True)
class Call:
    """One question of one run. `headers` are the few that belong to the question and go to the provider with it."""

    context: RunContext
    key: str
    wire: Wire
    asked: Asked
    body: Message
    request_hash: str
    worst_nusd: int
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> tuple[str, str]:
        return self.context.run_id, self.key


@dataclass(frozen=True)
class Settlement:
    """A finished call: the answer, what it used, what it cost, and where the time went."""

    protocol: run_spec.Protocol
    message: Message
    usage: TokenUsage
    finish: Finish
    cost_nusd: int
    tries: int
    queue_s: float
    provider_s: float
    priced: bool = True
    """False: the model has no price, and `cost_nusd` says nothing."""


class Source(StrEnum):
    """Where an answer comes from."""

    BOUGHT = "bought"  #: this call paid for it
    REPLAYED = "replayed"  #: bought earlier by the same call, or by the run that this one retries
    CACHED = "cached"  #: bought by another run that asked the same


@dataclass(frozen=True)
class Answered:
    settlement: Settlement
    source: Source


def request_hash(provider: str, path: str, body: Message, headers: Mapping[str, str]) -> str:
    """What makes two requests the same question: all of the body but the form of delivery."""
    question = {name: value for name, value in body.items() if name not in FORM_FIELDS}
    text = json.dumps([provider, path, question, sorted(headers.items())], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def question_key(request_hash: str, server: str) -> str:
    """The same question to the same server, whoever asks."""
    return hashlib.sha256(f"{request_hash} {server}".encode("utf-8", "surrogatepass")).hexdigest()


def sample_index(call_key: str) -> int:
    """The sample of `benchmark/problem/sample/turn`; a problem's id may contain slashes. Other keys are sample 0."""
    parts = call_key.rsplit("/", 2)
    return int(parts[1]) if len(parts) == 3 and parts[1].isdecimal() and parts[1].isascii() else 0
