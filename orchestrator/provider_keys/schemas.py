"""Request and response bodies for provider keys."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field, SecretStr

from orchestrator.http.schemas import Answer, Body, Text
from orchestrator.provider_keys.service import Holder
from orchestrator.provider_keys.tables import OF_WORKSPACE, ProviderKey


class KeyCreate(Body):
    provider: Annotated[Text, Field(min_length=1, max_length=100, description="One that is set up here, such as `openai`.")]
    key: Annotated[SecretStr, Field(min_length=8, max_length=10_000, description="It is sealed and never shown again.")]
    name: Annotated[Text, Field(max_length=100, description="What you call it.")] = ""
    holder: Annotated[Holder, Field(description="`user`: for your own runs; `workspace`: for all of the workspace.")] = (
        Holder.USER
    )
    base_url: Annotated[
        Text | None, Field(max_length=300, description="Where it is for; refused if that is not where the provider is.")
    ] = None

    def values(self) -> dict[str, Any]:
        """The arguments for the service."""
        return {
            "name": self.name.strip() or self.provider,
            "provider": self.provider,
            "secret": self.key.get_secret_value().strip(),
            "base_url": self.base_url,
        }


class KeyOut(Answer):
    id: int
    provider: str
    name: str
    holder: Holder
    origin: str
    hint: str
    created_by: str
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: ProviderKey) -> Self:
        holder = Holder.WORKSPACE if row.user_id == OF_WORKSPACE else Holder.USER
        values = {name: getattr(row, name) for name in cls.model_fields if name != "holder"}
        return cls(**values, holder=holder)


class Rotated(Answer):
    sealed_again: int
    unreadable: int
