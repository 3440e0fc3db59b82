"""REST for provider keys that callers bring. A key is given once; only the end of it ever comes back."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from fastapi import Path, Request, Response
from pydantic import Field, SecretStr

from orchestrator.errors import Forbidden, Invalid
from orchestrator.http.audit_trail import note
from orchestrator.http.context import Context, caller_of
from orchestrator.http.policy import OWNER, READ, RUN, Policy, Router
from orchestrator.http.schemas import Answer, Body, Page, Text
from orchestrator.provider_keys.tables import OF_WORKSPACE, ProviderKey
from orchestrator.scopes import Scope

router = Router(prefix="/api/keys", tags=["keys"])


class Holder(StrEnum):
    USER = "user"  #: for the caller's own runs
    WORKSPACE = "workspace"  #: for all runs of the workspace


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


@router.get("", policy=Policy(READ))
async def list_keys(request: Request, context: Context) -> Page[KeyOut]:
    """The workspace's keys and your own, with the last four characters of each."""
    rows = await context.accounts.keys.listed(caller_of(request).user_id)
    return Page(items=[KeyOut.of(row) for row in rows])


@router.post(
    "", policy=Policy(RUN), status_code=201, responses={200: {"description": "It replaced the one that was there."}}
)
async def put_key(body: KeyCreate, request: Request, response: Response, context: Context) -> KeyOut:
    """Give a key for a provider: 201, or 200 if it replaces the one that the holder had."""
    caller = caller_of(request)
    user_id = OF_WORKSPACE if body.holder is Holder.WORKSPACE else caller.user_id
    if user_id is None:
        raise Invalid("holder: you are not signed in as a user, so the key must be the workspace's (`workspace`)")
    if user_id == OF_WORKSPACE and not caller.scope.allows(Scope.ADMIN):
        raise Forbidden("Keys of the workspace are for its admins to give; give one of your own with holder `user`.")
    row, new = await context.accounts.keys.put(
        name=body.name.strip() or body.provider,
        provider=body.provider,
        secret=body.key.get_secret_value().strip(),
        base_url=body.base_url,
        user_id=user_id,
        by=caller.name,
    )
    note(request.scope, object_id=str(row.id), detail=f"{row.provider}, {body.holder}")
    response.status_code = 201 if new else 200
    return KeyOut.of(row)


@router.post("/rotate", policy=Policy(OWNER))
async def rotate_keys(context: Context) -> Rotated:
    """Seal everything anew with the first of the master keys, so that the others can be taken away."""
    keys, logins = await context.accounts.keys.rotate(), await context.accounts.sessions.seal_again()
    return Rotated(sealed_again=keys[0] + logins[0], unreadable=keys[1] + logins[1])


@router.delete("/{key_id}", policy=Policy(RUN), status_code=204)
async def remove_key(key_id: Annotated[int, Path(ge=0, le=2**31 - 1)], request: Request, context: Context) -> None:
    """Remove a key. Calls that are at the provider end; the next one is paid by whoever is next."""
    caller = caller_of(request)
    row = await context.accounts.keys.remove(key_id, caller.user_id, admin=caller.scope.allows(Scope.ADMIN))
    note(request.scope, detail=row.provider)
