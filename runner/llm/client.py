"""The interface to a model: a prompt in, a completion out, in one shape for all providers.

A client tries once and raises a `runner.errors.CallError`; `calls` decides whether and when to repeat.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from runner.contract import run_spec
from runner.contract.run_spec import ModelSpec
from runner.errors import BudgetExhausted, CallCollected, CallError, GatewayAway, PriceUnknown, ProviderFailed
from runner.process.boot import SOCKET_OPTIONS, seconds

if TYPE_CHECKING:
    import httpx2

REPLAYED_HEADER = "x-benchyard-replayed"
CODE_HEADER = "x-benchyard-code"

SILENCE_S = 60.0
"""The gateway sends a keep-alive every few seconds; how long a provider may take is for the gateway to decide."""

MOST_CONNECTIONS, MOST_IDLE = 1000, 100

AWAY = frozenset({408, 425, 429, 502, 503, 504, 529})
"""Statuses of an intermediary or server that is temporarily unavailable."""

FINAL_CODES = frozenset(
    {
        "EXTERNAL_API_ERROR",
        "RATE_LIMITED",
        "PROVIDER_KEY_REFUSED",
        "CONFLICT",
        "VALIDATION_ERROR",
        "PRICE_UNKNOWN",
        "INTERNAL_ERROR",
    }
)
"""Error codes of the gateway that mean it has exhausted its retries."""


GATEWAY_CODES = frozenset({"UNAVAILABLE", "UNAUTHORIZED"})
"""Error codes about the gateway, not the provider. The reporter notices an invalid run token and stops the work."""


class Finish(StrEnum):
    """Why the model stopped."""

    STOP = "stop"  #: it was finished
    LENGTH = "length"  #: it reached the token limit or the end of its context
    REFUSAL = "refusal"  #: the model or the provider's filter declined
    OTHER = "other"  #: any other reason


class Turn(TypedDict):
    """A message before the last one of the user, in the shape that all protocols share."""

    role: str
    content: str


@dataclass(frozen=True)
class Prompt:
    system: str
    user: str
    version: str
    earlier: tuple[Turn, ...] = ()

    def after(self, system: str) -> "Prompt":
        """The prompt with this text before its own system prompt."""
        return replace(self, system=f"{system}\n\n{self.system}".rstrip()) if system else self

    @property
    def text(self) -> str:
        """All parts, for the record."""
        said = [f"[{turn['role']}]\n{turn['content']}" for turn in self.earlier]
        return "\n\n".join([*([self.system] if self.system else []), *said, self.user])


@dataclass(frozen=True)
class Completion:
    """A model's whole answer. `input_tokens` includes cached ones, `output_tokens` includes reasoning."""

    text: str
    thinking: str = ""
    finish: Finish = Finish.STOP
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    latency_s: float = 0.0
    replayed: bool = False


class LlmClient(Protocol):
    async def complete(self, prompt: Prompt, call_key: str) -> Completion:
        """Tries once. Raises a `CallError`."""

    async def close(self) -> None: ...


class NoClient:
    """The client of a run that asks no model."""

    async def complete(self, prompt: Prompt, call_key: str) -> Completion:
        raise ProviderFailed("this run asks no model", 400)

    async def close(self) -> None:
        """There is nothing to close."""


def open_client(model: ModelSpec, gateway_url: str, token: str) -> LlmClient:
    """Imports the one SDK that the model needs. This takes seconds: call it in a thread."""
    if model.protocol is run_spec.Protocol.ANTHROPIC:
        from runner.llm.anthropic_client import AnthropicClient

        return AnthropicClient(model, gateway_url, token)
    from runner.llm.openai_client import OpenAIClient

    return OpenAIClient(model, gateway_url, token)


def gateway_transport() -> "httpx2.AsyncHTTPTransport":
    """Returns the transport of one SDK client: as many connections to the gateway as needed, which detect a dead peer."""
    import httpx2

    limits = httpx2.Limits(max_connections=MOST_CONNECTIONS, max_keepalive_connections=MOST_IDLE)
    return httpx2.AsyncHTTPTransport(trust_env=False, limits=limits, socket_options=SOCKET_OPTIONS)


def load_sdks() -> None:
    """Imports every SDK, for a warm runner that does not know its model yet."""
    import runner.llm.anthropic_client
    import runner.llm.openai_client  # noqa: F401


def error_for(status: int, body: object, headers: Mapping[str, str], message: str) -> CallError:
    """Converts an error response of any SDK into a `CallError`.

    A status below 400 means that the error arrived within a stream; the event may carry the real status. Such an error is
    final, after the gateway's own retries, unless it says that the gateway itself is unavailable.
    """
    code, detail = headers.get(CODE_HEADER) or _code_of(body), _message_of(body) or message
    within_success = status < 400
    if within_success and isinstance(body, Mapping) and isinstance(body.get("status"), int):
        status = body["status"]
    text = f"{detail} (status {status}{f', {code}' if code else ''})" if status >= 400 else detail
    scope = _scope_of(body)
    if code == "COLLECTED":
        return CallCollected(detail)
    if code == "PRICE_UNKNOWN":
        return PriceUnknown(detail)
    if status == 402 or code == "BUDGET_EXHAUSTED":
        return BudgetExhausted(detail)
    if code == "PROVIDER_KEY_REFUSED":
        return ProviderFailed(text, 401, scope)
    if code in GATEWAY_CODES or (status in AWAY and code not in FINAL_CODES and not within_success):
        return GatewayAway(text, seconds(headers.get("retry-after")))
    return ProviderFailed(text, status, scope)


def _parts(body: object) -> list[Mapping[str, Any]]:
    """Returns the parts of an error body, outermost first: any provider's shape, problem+json, or an SDK's inner `error`."""
    if not isinstance(body, Mapping):
        return []
    inner = body.get("error")
    return [body, inner] if isinstance(inner, Mapping) else [body]


def _code_of(body: object) -> str | None:
    codes: list[str] = []
    for part in _parts(body):
        details = part.get("details")
        nested = details.get("error_code") if isinstance(details, Mapping) else None
        codes += [value for value in (part.get("code"), nested, part.get("type")) if isinstance(value, str)]
    return next((value for value in codes if value.isupper()), None)


def _scope_of(body: object) -> str | None:
    """Returns the scope that the gateway gave an error in `details.scope`; None if it gave none."""
    scopes = set(run_spec.ErrorScope)
    for part in _parts(body):
        details = part.get("details")
        if isinstance(details, Mapping) and details.get("scope") in scopes:
            return str(details["scope"])
    return None


def _message_of(body: object) -> str | None:
    for part in reversed(_parts(body)):
        for name in ("message", "detail"):
            if isinstance(part.get(name), str) and part[name]:
                return str(part[name])
    return None
