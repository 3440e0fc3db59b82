"""REST for provider keys that callers bring. A key is submitted once; later only its end is shown."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request, Response

from orchestrator.http.audit_trail import note
from orchestrator.http.context import Context, caller_of
from orchestrator.http.policy import OWNER, READ, RUN, Policy, Router
from orchestrator.http.schemas import Page
from orchestrator.provider_keys.schemas import KeyCreate, KeyOut, Rotated
from orchestrator.provider_keys.service import holder_id
from orchestrator.scopes import Scope

router = Router(prefix="/api/keys", tags=["keys"])


@router.get("", policy=Policy(READ))
async def list_keys(request: Request, context: Context) -> Page[KeyOut]:
    """The workspace's keys and your own, with the last four characters of each."""
    rows = await context.accounts.keys.listed(caller_of(request).user_id)
    return Page(items=[KeyOut.of(row) for row in rows])


@router.post(
    "", policy=Policy(RUN), status_code=201, responses={200: {"description": "It replaced the one that was there."}}
)
async def put_key(body: KeyCreate, request: Request, response: Response, context: Context) -> KeyOut:
    """Store a key for a provider: 201, or 200 if it replaces the holder's earlier one."""
    caller = caller_of(request)
    row, new = await context.accounts.keys.put(
        **body.values(), user_id=holder_id(body.holder, caller.user_id, caller.scope), by=caller.name
    )
    note(request.scope, object_id=str(row.id), detail=f"{row.provider}, {body.holder}")
    response.status_code = 201 if new else 200
    return KeyOut.of(row)


@router.post("/rotate", policy=Policy(OWNER))
async def rotate_keys(context: Context) -> Rotated:
    """Seal everything again with the first master key, so that the others can be removed."""
    accounts = context.accounts
    counts = (await accounts.keys.rotate(), await accounts.sessions.seal_again(), await context.providers.service.rotate())
    return Rotated(sealed_again=sum(sealed for sealed, _ in counts), unreadable=sum(left for _, left in counts))


@router.delete("/{key_id}", policy=Policy(RUN), status_code=204)
async def remove_key(key_id: Annotated[int, Path(ge=0, le=2**31 - 1)], request: Request, context: Context) -> None:
    """Remove a key. Calls in flight finish; the next call uses the next key in the order of precedence."""
    caller = caller_of(request)
    row = await context.accounts.keys.remove(key_id, caller.user_id, admin=caller.scope.allows(Scope.ADMIN))
    note(request.scope, detail=row.provider)
