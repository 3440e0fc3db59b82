"""REST for the limits of a workspace and its users, with their current usage."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request

from orchestrator.http.context import Context, caller_of
from orchestrator.http.policy import ADMIN, READ, Policy, Router
from orchestrator.limits.schemas import LimitOut, LimitSet, LimitsOut
from orchestrator.limits.service import Limit

router = Router(prefix="/api/limits", tags=["limits"])

Whose = Annotated[
    str, Path(pattern=r"^(workspace|everyone|[1-9]\d{0,9})$", description="`workspace`, `everyone`, or a user's id.")
]


@router.get("", policy=Policy(READ))
async def list_limits(request: Request, context: Context) -> LimitsOut:
    """The workspace's limits and their current usage."""
    caller = caller_of(request)
    return LimitsOut.of(await context.accounts.limits.overview(caller.workspace_id, caller.user_id))


@router.put("/{whose}", policy=Policy(ADMIN))
async def set_limit(whose: Whose, body: LimitSet, request: Request, context: Context) -> LimitOut:
    """Set all three limits at once: of the workspace (owners only), of each of its users, or of one user."""
    caller = caller_of(request)
    stored = await context.accounts.limits.set(
        whose, Limit(**body.model_dump()), caller.workspace_id, by=caller.name, scope=caller.scope
    )
    context.signals.wake()
    return LimitOut.of(*stored)


@router.delete("/{whose}", policy=Policy(ADMIN), status_code=204)
async def remove_limit(whose: Whose, request: Request, context: Context) -> None:
    """Remove a limit."""
    caller = caller_of(request)
    await context.accounts.limits.remove(whose, caller.workspace_id, scope=caller.scope)
    context.signals.wake()
