"""Request and response bodies of providers. Secrets come in and never go out."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field, SecretStr, field_validator

from orchestrator.gateway.providers.directory import ProviderSource
from orchestrator.gateway.upstream.kinds.table import GENERIC
from orchestrator.gateway.upstream.providers import Provider
from orchestrator.http.schemas import Answer, Body, Text
from orchestrator.providers.definition import Definition, Secrets, split_login
from orchestrator.providers.probe import Findings
from orchestrator.providers.tables import StoredProvider
from runner.contract.run_spec import Protocol

Path = Annotated[Text, Field(max_length=500)]
Headers = Annotated[
    dict[Annotated[Text, Field(max_length=100)], SecretStr],
    Field(max_length=20, description="Sent with every request. The values are sealed and never shown again."),
]
Key = Annotated[SecretStr, Field(min_length=1, max_length=20_000, description="It is sealed and never shown again.")]
BaseUrl = Annotated[Text, Field(max_length=300, description="Default: the known address of servers of this kind.")]
SECRET = ("key", "headers")


class ProviderFields(Body):
    kind: Annotated[Text, Field(max_length=40)] | None = None
    base_url: BaseUrl | None = None
    protocols: list[Protocol] | None = None
    key: Key | None = None
    key_variable: (
        Annotated[Text, Field(max_length=200, description="Or: the variable of the service that has it.")] | None
    ) = None
    key_file: (
        Annotated[Path, Field(description="Or: a file on the machine of the service, read anew for each call.")] | None
    ) = None
    headers: Headers | None = None
    proxy: Annotated[Text, Field(max_length=500, description="Credentials in it are sealed.")] | None = None
    ca_bundle: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None
    allow_private: bool | None = None
    list_path: Annotated[Text, Field(max_length=300)] | None = None
    list_without_key: bool | None = None
    api_version: Annotated[Text, Field(max_length=40)] | None = None

    @field_validator("key")
    @classmethod
    def _is_a_key(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and not (key.get_secret_value().strip().isascii()):
            raise ValueError("it has characters that a key cannot have; copy the whole key again")
        return key

    def changes(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The given settings and the given secrets; null sets back what it is given for."""
        given = self.model_fields_set - {"name"}
        settings: dict[str, Any] = {}
        for name in given - set(SECRET) - {"proxy"}:
            value = getattr(self, name)
            default = getattr(Definition(), name)
            settings[name] = default if value is None else tuple(map(str, value)) if name == "protocols" else value
        secret: dict[str, Any] = {}
        if "key" in given:
            secret["key"] = self.key.get_secret_value().strip() if self.key else ""
        if "headers" in given:
            secret["headers"] = {name: value.get_secret_value() for name, value in (self.headers or {}).items()}
        if "proxy" in given:
            settings["proxy"], secret["proxy_login"] = split_login((self.proxy or "").strip())
        return settings, secret


class ProviderCreate(ProviderFields):
    name: Annotated[Text, Field(max_length=100, description="What models call it: lower case letters, digits, - and _.")]

    def parts(self) -> tuple[Definition, Secrets]:
        settings, secret = self.changes()
        return Definition(**settings), Secrets(**secret)


class ProviderPatch(ProviderFields):
    """Omitted fields stay unchanged; null removes a value. Another origin needs key and headers again."""


class LearnedOut(Answer):
    """What the server taught about requests for one model."""

    model: str
    form: list[str]
    sentences: list[str]


class ProviderOut(Answer):
    name: str
    source: ProviderSource
    kind: str
    base_url: str
    protocols: list[str]
    key: Annotated[str, Field(description="Where the key is: `vault`, `variable`, `file` or `none`.")]
    key_variable: str
    key_file: str
    key_hint: str
    has_key: bool
    headers: Annotated[list[str], Field(description="Names only.")]
    proxy: str
    ca_bundle: str
    client_cert: str
    client_key: str
    allow_private: bool
    list_path: str
    list_without_key: bool
    api_version: str
    models: Annotated[int, Field(description="Models of the catalogue that use it.")]
    learned: list[LearnedOut] = []
    created_by: str = ""
    updated_at: datetime | None = None

    @classmethod
    def of(
        cls,
        provider: Provider,
        source: ProviderSource,
        row: StoredProvider | None,
        *,
        has_key: bool,
        models: int,
        learned: list[LearnedOut],
    ) -> Self:
        stored = row if source is ProviderSource.STORED else None
        definition = Definition.of(stored.settings) if stored else Definition()
        key = provider.key
        vaulted = key.opened is not None
        place = "vault" if vaulted else "file" if key.file else "variable" if key.variable else "none"
        return cls(
            name=provider.name,
            source=source,
            kind=definition.kind if stored else _kind_name(provider),
            base_url=provider.base_url,
            protocols=sorted(provider.protocols),
            key=place,
            key_variable="" if vaulted or key.file else key.variable,
            key_file=str(key.file or ""),
            key_hint=definition.key_hint,
            has_key=has_key,
            headers=sorted(provider.headers),
            proxy=split_login(provider.proxy)[0],
            ca_bundle=provider.ca_bundle,
            client_cert=provider.client_cert,
            client_key=provider.client_key,
            allow_private=provider.allow_private,
            list_path=provider.list_path,
            list_without_key=provider.list_without_key,
            api_version=provider.api_version,
            models=models,
            learned=learned,
            created_by=stored.created_by if stored else "",
            updated_at=stored.updated_at if stored else None,
        )


def _kind_name(provider: Provider) -> str:
    return provider.name if provider.kind is GENERIC and provider.name in ("anthropic", "openai") else provider.kind.name


class ProviderTest(Body):
    model: (
        Annotated[Text, Field(min_length=1, max_length=200, description="A slug, or a name at the provider. Default: any.")]
        | None
    ) = None


class ProviderTested(Answer):
    provider: str
    ok: bool
    summary: str
    sentences: list[str]
    faults: list[str]
    model: str | None
    models: int | None
    input_tokens: int
    output_tokens: int

    @classmethod
    def of(cls, found: Findings) -> Self:
        return cls(ok=found.ok, summary=found.summary, **vars(found))


class Forgotten(Answer):
    forgotten: Annotated[int, Field(description="For how many models something was known.")]


class KindOut(Answer):
    name: str
    title: str
    source: str
    base_url: str
    protocols: list[str]
