"""Data classes that the parts of the gateway share: a model call, the run that makes it, and its answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from orchestrator.gateway.ledger.prices import Prices
from orchestrator.gateway.protocols.protocol import CallRequest, Finish, Message, TokenUsage, Wire
from orchestrator.gateway.provider_batches.lots import BatchTerms, Lot
from orchestrator.gateway.upstream.secrets.credentials import SYSTEM, Payer
from runner.contract import run_spec


@dataclass(frozen=True)
class DayCap:
    """A daily spending limit: for everybody, for one workspace, or for one user within it."""

    nano_usd: int
    workspace_id: int | None = None
    user_id: int | None = None

    @property
    def owner(self) -> str:
        if self.user_id is not None:
            return "of this user for the day"
        return "of the day" if self.workspace_id is None else "of the workspace for the day"


@dataclass(frozen=True)
class RunContext:
    """A live run as the gateway sees it. It may call only its one model, through its one provider; and, for the calls of
    its plan that ask them, the models that judge its answers."""

    run_id: str
    attempt: int
    slug: str
    provider: str
    model: str
    prices: Prices | None = None
    budget_nano_usd: int | None = None
    day_caps: tuple[DayCap, ...] = ()
    request_timeout_s: float = 600.0
    over_limit: float = 1.0  #: how many times more tokens than allowed its server was seen to give; 1: it keeps the limit
    reuse_since: datetime | None = None  #: answers that other runs bought since then may be reused
    payer: Payer = SYSTEM
    no_key: str | None = None  #: why this run has no usable key
    plans: Callable[[str], bool] = lambda key: True  #: whether the run's plan contains a call with this key
    judge_of: Callable[[str], int | None] = lambda key: None  #: the judge that a planned call with this key asks
    judges: Mapping[int, RunContext] = field(default_factory=dict)  #: the same run, asking one of its judges
    judge_model_id: int | None = None  #: set if this is the run asking a judge
    batch: BatchTerms | None = None  #: set if the run's calls go through the provider's batches

    def asking(self, key: str) -> RunContext:
        """The run as it makes the call with this key: to its own model, or to a judge."""
        model_id = self.judge_of(key)
        return self if model_id is None else self.judges.get(model_id, self)

    @property
    def capped(self) -> bool:
        return self.budget_nano_usd is not None or bool(self.day_caps)


FORM_FIELDS = frozenset({"stream", "stream_options"})
"""Body fields that only control delivery: the same question is the same call, streamed or not."""


@dataclass(frozen=True)
class Call:
    """One question of one run. `headers` are the few that belong to the question and are forwarded to the provider."""

    context: RunContext
    key: str
    wire: Wire
    request: CallRequest
    body: Message
    request_hash: str
    worst_nano_usd: int
    headers: Mapping[str, str] = field(default_factory=dict)
    lot: Lot | None = None  #: set if it is to be answered in a batch; `worst_nano_usd` is then at the batch's prices
    ordinary_worst_nano_usd: int = 0

    def made_now(self) -> Call:
        """The same call, made in the ordinary way at the ordinary price."""
        return replace(self, lot=None, worst_nano_usd=self.ordinary_worst_nano_usd)

    @property
    def id(self) -> tuple[str, str]:
        return self.context.run_id, self.key


@dataclass(frozen=True)
class Settlement:
    """A finished call: answer, usage, cost and timing."""

    protocol: run_spec.Protocol
    message: Message
    usage: TokenUsage
    finish: Finish
    cost_nano_usd: int
    tries: int
    queue_s: float
    provider_s: float
    priced: bool = True
    """False if the model has no price; `cost_nano_usd` is then meaningless."""
    cache_saving_nano_usd: int = 0


class Source(StrEnum):
    """Where an answer came from."""

    BOUGHT = "bought"  #: this call paid for it
    REPLAYED = "replayed"  #: bought earlier by the same call, or by the run that this one retries
    CACHED = "cached"  #: bought by another run that asked the same question


@dataclass(frozen=True)
class CallResult:
    settlement: Settlement
    source: Source


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def request_hash(provider: str, path: str, body: Message, headers: Mapping[str, str]) -> str:
    """The identity of a question: provider, path, headers and body, except the fields that control delivery."""
    question = {name: value for name, value in body.items() if name not in FORM_FIELDS}
    text = _canonical([provider, path, question, sorted(headers.items())])
    return hashlib.sha256(text.encode()).hexdigest()


def question_body(body: Message) -> bytes:
    """The request without the fields that control delivery, as a batch has it."""
    return json.dumps({name: value for name, value in body.items() if name not in FORM_FIELDS}).encode()


def question_key(request_hash: str, server: str) -> str:
    """Identifies the same question to the same server, whichever run asks."""
    return hashlib.sha256(f"{request_hash} {server}".encode("utf-8", "surrogatepass")).hexdigest()


def sample_index(call_key: str) -> int:
    """The sample number in `benchmark/problem/sample/turn`; a problem's id may contain slashes. 0 for other keys."""
    parts = call_key.rsplit("/", 2)
    return int(parts[1]) if len(parts) == 3 and parts[1].isdecimal() and parts[1].isascii() else 0
