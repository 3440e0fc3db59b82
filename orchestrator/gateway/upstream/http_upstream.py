"""One try at a real provider over HTTP. The only place where a provider's key is read to make a call.

Redirects are not followed. `answers` reads what comes back.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.gateway.calls import FORM_FIELDS, Call
from orchestrator.gateway.edge.errors import Code, GatewayError, UpstreamError
from orchestrator.gateway.pacing.retry import exhausted_for_s
from orchestrator.gateway.protocols.protocol import Message
from orchestrator.gateway.protocols.sse import compact
from orchestrator.gateway.providers.form_book import FormBook
from orchestrator.gateway.providers.thinking import with_thinking
from orchestrator.gateway.upstream.answers import AnswerReader
from orchestrator.gateway.upstream.connections.connection import (
    ConnectFailed,
    ConnectionBroke,
    ReceiveTimeout,
)
from orchestrator.gateway.upstream.connections.framing import BadResponse, Target
from orchestrator.gateway.upstream.connections.network_settings import proxies_of, tls_of
from orchestrator.gateway.upstream.connections.pool import Connections, refused_by
from orchestrator.gateway.upstream.errors import (
    transport_error,
)
from orchestrator.gateway.upstream.kinds.dialects import spoken
from orchestrator.gateway.upstream.kinds.prompt_cache import PromptCache
from orchestrator.gateway.upstream.kinds.request_forms import REFUSALS, Adjustment, adjusted, other_form, refused_parameter
from orchestrator.gateway.upstream.kinds.table import EXCHANGED, Auth, Dialect
from orchestrator.gateway.upstream.port import Received, Reply
from orchestrator.gateway.upstream.providers import Provider
from orchestrator.gateway.upstream.secrets.authorization import Credentials, credentials_of, one_line
from orchestrator.gateway.upstream.secrets.credentials import KeySource, NoKeys, Payer
from orchestrator.gateway.upstream.secrets.google_tokens import GoogleTokens, NoToken
from orchestrator.gateway.upstream.secrets.scrubbing import SECRET_CHARS, secrets_in_headers
from orchestrator.outbound.addresses import AddressRefused
from orchestrator.outbound.transports import PinnedTransport
from orchestrator.system.clock import Clock
from runner.contract.run_spec import THINKING_FIELD, ErrorScope, Protocol

MAX_ANSWER_BYTES = 16 << 20
ANTHROPIC_VERSION = "2023-06-01"
LONGEST_PAUSE_S = 60.0
IDLE_S = 300.0
LIMIT_TOLERANCE = 1.05
"""Servers count the last tokens differently."""
FIXED_HEADERS = {
    "content-type": "application/json",
    "accept": "text/event-stream, application/json",
    "accept-encoding": "identity",
    "user-agent": "benchyard",
}


class HttpUpstream:
    def __init__(
        self,
        provider: Provider,
        env: Mapping[str, str],
        *,
        clock: Clock,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
        idle_s: float = IDLE_S,
        tls: ssl.SSLContext | None = None,
        keys: KeySource | None = None,
        forms: FormBook | None = None,
        prompt_cache: PromptCache | None = None,
    ) -> None:
        self._provider = provider
        self._keys = keys or NoKeys()
        self._env = env
        self._clock = clock
        self._reader = AnswerReader(provider, clock, max_answer_bytes)
        self._proxy = proxies_of(provider, env).of(*provider.origin)
        self._tls = tls if tls is not None and not provider.has_own_tls else tls_of(provider, env)
        self._connections = Connections(
            provider.origin,
            rule=provider.address_rule,
            tls=self._tls,
            proxy=self._proxy,
            idle_s=idle_s,
            monotonic=clock.monotonic,
        )
        self._targets: dict[str, Target] = {}
        self._tokens = GoogleTokens(self.transport, clock)
        self._secrets = secrets_in_headers(provider.headers)
        self._forms = forms or FormBook()
        self._prompt_cache = prompt_cache
        self._refused = provider.kind.refused
        self._left_out: dict[str, set[str]] = {}
        self.server = provider.identity

    async def ask(self, call: Call, received: Received) -> Reply:
        return await self.ask_in(call, received, self.form(call.context.model))

    async def ask_in(self, call: Call, received: Received, form: frozenset[Adjustment], *, remember: bool = True) -> Reply:
        """Ask in a form, or in the next one that the server accepts, which is remembered."""
        if call.wire.protocol not in self._provider.protocols:
            spoken = ", ".join(sorted(self._provider.protocols))
            raise GatewayError(404, Code.NOT_FOUND, f"provider {self._provider.name} supports only {spoken}")
        credentials = await self.credentials(call.wire.protocol, call.context.payer)
        model, known = call.context.model, form
        refusal: UpstreamError | None = None
        while True:
            body = self._formed(call.wire.protocol, model, call.wire.outgoing(call.body), form)
            try:
                reply = await self._ask_marked(call, body, credentials, received)
            except UpstreamError as error:
                if error.code is Code.PROVIDER_KEY_REFUSED:
                    self._tokens.forget()
                parameter = refused_parameter(call.wire.protocol, body, error)
                if parameter is None:
                    raise
                other = other_form(call.wire.protocol, parameter, form, known)
                if other is None:
                    raise refusal or error from error
                form, refusal = other, refusal or error
            else:
                if form != known and remember:
                    self._learn(model, form=form)
                self._look_at_limit(call, body, reply.message)
                return reply

    def notes(self, model: str) -> list[str]:
        sentences = self._forms.of(self._provider, model).sentences()
        if left_out := sorted(self._left_out.get(model, ())):
            sentences.append(f"leaves out {', '.join(left_out)}, which {self._provider.kind.title} refuses")
        return sentences

    def form(self, model: str) -> frozenset[Adjustment]:
        """What the server of the model taught, else what is known of its kind."""
        learned = self._forms.of(self._provider, model).form
        return self._provider.kind.form if learned is None else learned

    def _learn(self, model: str, **lesson: Any) -> None:
        self._forms.learn(self._provider, model, replace(self._forms.of(self._provider, model), **lesson))

    @property
    def provider(self) -> Provider:
        return self._provider

    def in_its_form(self, protocol: Protocol, model: str, body: Message) -> Message:
        """A body without streaming, as the server of the model wants it."""
        formed = self._formed(protocol, model, body, self.form(model))
        return {name: value for name, value in formed.items() if name not in FORM_FIELDS}

    def transport(self, host: str = "") -> PinnedTransport:
        """For requests that are not calls, such as those of batches: the same address, proxy and authorities. `host` is
        another one that the provider's own key names."""
        provider = self._provider
        return PinnedTransport(
            host or provider.origin[1],
            provider.address_rule,
            tls=self._tls,
            proxies=proxies_of(provider, self._env),
            monotonic=self._clock.monotonic,
        )

    def _formed(self, protocol: Protocol, model: str, body: Message, form: frozenset[Adjustment]) -> Message:
        body = adjusted(body, form) if form else body
        if THINKING_FIELD in body:
            body = with_thinking(body, self._provider.kind.thinking)
        return self._without_refused(model, body) if self._refused and protocol is Protocol.OPENAI_CHAT else body

    def _without_refused(self, model: str, body: Message) -> Message:
        refused = self._refused & body.keys()
        if not refused:
            return body
        self._left_out.setdefault(model, set()).update(refused)
        return {name: value for name, value in body.items() if name not in refused}

    def _look_at_limit(self, call: Call, body: Message, message: Message) -> None:
        """Notice a server that ignores the token limit, on which the worst case of a call depends. Some obey its older
        name."""
        limit, usage = call.request.max_output_tokens, call.wire.usage(message)
        if limit is None or usage is None or usage.output_tokens <= limit * call.request.answers * LIMIT_TOLERANCE:
            return
        model = call.context.model
        if call.wire.protocol is Protocol.OPENAI_CHAT and "max_completion_tokens" in body:
            self._learn(model, form=self.form(model) | {Adjustment.MAX_TOKENS})
            return
        over = usage.output_tokens / (limit * call.request.answers)
        if over > self._forms.of(self._provider, model).most_over:
            sentence = (
                f"ignores the token limit: it gave {usage.output_tokens} tokens where {limit} were allowed, "
                "so a run can cost more than its budget"
            )
            self._learn(model, ignored_limit=sentence, most_over=over)

    async def _ask_marked(self, call: Call, body: Message, credentials: Credentials, received: Received) -> Reply:
        """Ask with what the run's prompts share marked for the server's cache, where it has one for the asking."""
        cache = self._prompt_cache
        if cache is None or call.wire.protocol is not Protocol.ANTHROPIC:
            return await self._ask_once(call, body, credentials, received)
        marked = cache.marked(call, body, self._clock.monotonic())
        try:
            reply = await self._ask_once(call, marked, credentials, received)
        except UpstreamError as error:
            if marked is body or error.status not in REFUSALS or "cache_control" not in error.message:
                raise
            cache.refused(call)
            return await self._ask_once(call, body, credentials, received)
        else:
            cache.answered(call, call.wire.usage(reply.message), self._clock.monotonic())
            return reply
        finally:
            cache.failed(call)

    async def _ask_once(self, call: Call, body: Message, credentials: Credentials, received: Received) -> Reply:
        request = self._request(call, body, credentials)
        try:
            async with asyncio.timeout(call.context.request_timeout_s), self._connections.one() as connection:
                head = await connection.request(request, call.wire.last_words)
                if head.status == 407 and self._proxy is not None:
                    raise refused_by(self._proxy, head.status)
                if head.status == 200:
                    pause_s = exhausted_for_s(head.headers, self._clock.now())
                    received(None if pause_s is None else min(pause_s, LONGEST_PAUSE_S))
                return await self._reader.read(call, head, connection, (*self._secrets, *credentials.secrets))
        except AddressRefused as error:
            message = f"provider {self._provider.name} may not be called: {error}"
            raise UpstreamError(502, message, retry=False, scope=ErrorScope.RUN) from error
        except (ConnectFailed, ConnectionBroke, ReceiveTimeout, BadResponse, TimeoutError) as error:
            raise transport_error(self._provider.name, error) from error

    async def close(self) -> None:
        self._connections.close()

    async def key_of(self, payer: Payer) -> str:
        """The key that the payer pays with. Raises `GatewayError`."""
        try:
            key = await self._keys.secret(payer, self._provider) if payer.key_id else self._provider.key.read(self._env)
        except (OSError, ValueError) as error:
            sentence = f"the key of provider {self._provider.name} cannot be read"
            raise GatewayError(401, Code.PROVIDER_KEY_REFUSED, sentence) from error
        if not key and self._provider.key_needed:
            where = (
                f"set {self._provider.key.variable}" if self._provider.key.variable else "enter one on the page Providers"
            )
            sentence = f"there is no key for provider {self._provider.name}: {where}"
            raise GatewayError(401, Code.PROVIDER_KEY_REFUSED, sentence)
        if self._provider.kind.auth in EXCHANGED:
            key = one_line(self._provider.kind, key)
        if not key.isascii() or not key.isprintable():
            sentence = f"the key of provider {self._provider.name} has characters that no key has"
            raise GatewayError(401, Code.PROVIDER_KEY_REFUSED, sentence)
        return key

    async def credentials(self, protocol: Protocol, payer: Payer) -> Credentials:
        """What shows the server who pays. Raises `GatewayError`."""
        key = await self.key_of(payer)
        if self._provider.kind.auth not in EXCHANGED:
            return Credentials(self._provider.key_headers(protocol, key), secrets=(key,) if len(key) >= SECRET_CHARS else ())
        try:
            return await credentials_of(self._provider, protocol, key, self._tokens)
        except NoToken as error:
            if error.passing:
                raise UpstreamError(502, str(error), retry=True, scope=ErrorScope.RUN) from error
            raise GatewayError(401, Code.PROVIDER_KEY_REFUSED, str(error)) from error
        except ValueError as error:
            sentence = f"the key of provider {self._provider.name} cannot be used: {error}"
            raise GatewayError(401, Code.PROVIDER_KEY_REFUSED, sentence) from error

    def _request(self, call: Call, body: Message, credentials: Credentials) -> bytes:
        provider, protocol = self._provider, call.wire.protocol
        plain = provider.kind.dialect is not Dialect.MODEL_IN_PATH
        headers = dict(call.headers) if protocol is Protocol.ANTHROPIC and plain else {}
        whole = body.get("stream") is not True
        url = provider.url(protocol, call.wire.path, call.context.model if provider.path_has_model else "", whole=whole)
        if (target := self._targets.get(url)) is None:
            version = {"anthropic-version": ANTHROPIC_VERSION} if protocol is Protocol.ANTHROPIC and plain else {}
            accepted = {"accept": "application/json"} if provider.kind.auth is Auth.AWS else {}
            target = self._targets[url] = Target(
                url, {**provider.headers, **version, **FIXED_HEADERS, **accepted}, self._proxy
            )
        try:
            if provider.kind.dialect is not Dialect.PLAIN:
                body = spoken(provider.kind, body, call.headers)
            content = compact(body).encode()
            shown = credentials.fixed if credentials.keys is None else credentials.headers("POST", url, content)
            return target.post({**headers, **shown}, content)
        except RuntimeError as error:
            raise GatewayError(401, Code.PROVIDER_KEY_REFUSED, str(error)) from error
        except ValueError as error:
            raise GatewayError(400, Code.VALIDATION_ERROR, f"the call to {provider.name} {error}") from error
