"""Tries a provider with real calls, and says in words what its server understood.

It asks for the list of models, then one model for a few tokens: once streamed, once in one piece. The calls are not part of
any run; they are as small as calls get. What the server teaches is remembered, as with any call.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.db.session import Database
from orchestrator.errors import Invalid, NotFound
from orchestrator.gateway.calls import Call, RunContext
from orchestrator.gateway.edge.errors import GatewayError
from orchestrator.gateway.protocols.anthropic_messages import AnthropicMessages
from orchestrator.gateway.protocols.openai_chat import OpenAIChat
from orchestrator.gateway.protocols.openai_responses import OpenAIResponses
from orchestrator.gateway.protocols.protocol import Message, TokenUsage, Wire
from orchestrator.gateway.providers.directory import ProviderDirectory
from orchestrator.gateway.providers.form_book import FormBook
from orchestrator.gateway.upstream.http_upstream import HttpUpstream
from orchestrator.gateway.upstream.kinds.request_forms import Adjustment
from orchestrator.gateway.upstream.model_lists import ListFailed, list_models
from orchestrator.gateway.upstream.providers import Provider
from orchestrator.providers import queries
from orchestrator.startup import BadConfiguration
from orchestrator.system.clock import Clock
from runner.contract.run_spec import Protocol

CALL_S = 60.0
MOST_TOKENS = 16
"""The least that all servers accept."""
QUESTION = "Count from 1 to 100, separated by spaces."
WIRES: dict[Protocol, Wire] = {wire.protocol: wire for wire in (AnthropicMessages(), OpenAIChat(), OpenAIResponses())}


@dataclass
class Findings:
    """`sentences` are about what works and what differs, `faults` about what does not work."""

    provider: str
    model: str | None = None
    models: int | None = None
    sentences: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def ok(self) -> bool:
        return not self.faults

    @property
    def summary(self) -> str:
        return "; ".join((*self.sentences, *self.faults))


class Probe:
    def __init__(self, db: Database, clock: Clock, directory: ProviderDirectory, book: FormBook) -> None:
        self._db = db
        self._clock = clock
        self._directory = directory
        self._book = book

    async def run(self, name: str, model: str | None = None) -> Findings:
        """`model`: a slug, or a name at the provider. Default: one of the catalogue, else one of the list."""
        provider = self._directory.current.get(name)
        if provider is None:
            known = ", ".join(sorted(self._directory.current))
            raise NotFound(f"there is no provider {name[:100]}; there are {known}")
        found = Findings(name)
        listed = await self._list(provider, found)
        found.model, protocol = await self._choose(provider, model, listed)
        if found.model is None:
            found.faults.append("no model is known to try: name one with `model`")
            return found
        try:
            upstream = HttpUpstream(
                provider, self._directory.env, clock=self._clock, forms=self._book, max_answer_bytes=1 << 20
            )
        except BadConfiguration as error:
            found.faults.append(str(error))
            return found
        try:
            await self._ask(upstream, provider, protocol, found)
        finally:
            await upstream.close()
        return found

    async def _list(self, provider: Provider, found: Findings) -> list[str]:
        try:
            listed = [model.name for model in await list_models(provider, self._directory.env, clock=self._clock)]
        except (ListFailed, BadConfiguration) as error:
            found.sentences.append(f"lists no models ({error})")
            return []
        found.models = len(listed)
        found.sentences.append(f"lists {len(listed)} model{'' if len(listed) == 1 else 's'}")
        return listed

    async def _choose(self, provider: Provider, wanted: str | None, listed: list[str]) -> tuple[str | None, Protocol]:
        usual = Protocol.ANTHROPIC if Protocol.ANTHROPIC in provider.protocols else Protocol.OPENAI_CHAT
        usual = usual if usual in provider.protocols else min(provider.protocols)
        if wanted is not None:
            row = await self._db.read(lambda session: queries.model_named(session, provider.name, wanted))
        else:
            row = await self._db.read(lambda session: queries.a_model(session, provider.name))
        if row is not None:
            protocol = Protocol(row.protocol)
            if protocol not in provider.protocols:
                raise Invalid(f"model: {row.slug} speaks {protocol}, which {provider.name} does not")
            return row.name, protocol
        return wanted or (listed[0] if listed else None), usual

    async def _ask(self, upstream: HttpUpstream, provider: Provider, protocol: Protocol, found: Findings) -> None:
        model = found.model or ""
        call = _call(provider, model, WIRES[protocol])
        before = upstream.form(model)
        try:
            reply = await upstream.ask(call, _ignored)
        except GatewayError as error:
            found.faults.append(f"{model} gives no answer: {error}")
            return
        usage = call.wire.usage(reply.message)
        form = upstream.form(model)
        found.sentences.append("streams" if reply.streamed else "answers in one piece only")
        _count(found, usage)
        if reply.streamed:
            try:
                whole = await upstream.ask_in(call, _ignored, form | {Adjustment.NO_STREAM}, remember=False)
            except GatewayError as error:
                found.sentences.append(f"answers only in streams ({error})")
            else:
                usage = call.wire.usage(whole.message)
                _count(found, usage)
                found.sentences.append("streams even when not asked to" if whole.streamed else "answers in one piece too")
        found.sentences += _about(form, before, protocol)
        found.sentences.append("reports usage" if usage else "reports no usage, so tokens are estimated")
        if ignored := self._book.of(provider, model).ignored_limit:
            found.sentences.append(ignored)
        elif usage is not None and usage.output_tokens == MOST_TOKENS:
            found.sentences.append("keeps the token limit")


def _ignored(pause_s: float | None) -> None:
    """A pause that the server asks for is of no interest here."""


def _count(found: Findings, usage: TokenUsage | None) -> None:
    if usage is not None:
        found.input_tokens += usage.input_tokens
        found.output_tokens += usage.output_tokens


def _call(provider: Provider, model: str, wire: Wire) -> Call:
    body: Message = {"model": model, "temperature": 0.5}
    match wire.protocol:
        case Protocol.ANTHROPIC:
            body |= {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": MOST_TOKENS}
        case Protocol.OPENAI_CHAT:
            body |= {"messages": [{"role": "user", "content": QUESTION}], "max_completion_tokens": MOST_TOKENS}
        case Protocol.OPENAI_RESPONSES:
            body |= {"input": QUESTION, "max_output_tokens": MOST_TOKENS}
    context = RunContext("provider test", 1, model, provider.name, model, request_timeout_s=CALL_S)
    return Call(context, "test", wire, wire.read(body), body, request_hash="", worst_nano_usd=0)


def _about(form: frozenset[Adjustment], before: frozenset[Adjustment], protocol: Protocol) -> list[str]:
    said = []
    if protocol is Protocol.OPENAI_CHAT:
        said.append(f"takes {'max_tokens' if Adjustment.MAX_TOKENS in form else 'max_completion_tokens'}")
        said.append("refuses stream_options" if Adjustment.NO_STREAM_OPTIONS in form else "takes stream_options")
    said.append("refuses temperature" if Adjustment.NO_TEMPERATURE in form else "takes temperature")
    if form != before:
        said.append("this was learned now and is remembered")
    return said
