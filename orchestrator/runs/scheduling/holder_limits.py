"""Which workspaces, and which users in them, have reached their limit of concurrent runs. Their other runs wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sqlmodel import Session

from orchestrator.provider_keys import queries as key_queries
from orchestrator.provider_keys.queries import EVERYONE, WORKSPACE


class RunsAtOnce(Protocol):
    @property
    def workspace_id(self) -> int: ...
    @property
    def whose(self) -> str: ...
    @property
    def runs_at_once(self) -> int | None: ...


@dataclass(frozen=True)
class HoldersAtLimit:
    """Workspaces and users at their limit, with the limits."""

    workspaces: Mapping[int, int] = field(default_factory=dict)
    users: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def why(self, workspace_id: int, user_id: int | None) -> str | None:
        """Why a run must wait for others of its workspace or user, or None."""
        if (most := self.workspaces.get(workspace_id)) is not None:
            return f"its workspace has {most} runs at once, which is its limit"
        if user_id is not None and (most := self.users.get((workspace_id, user_id))) is not None:
            return f"its user has {most} runs at once, which is their limit"
        return None


NOBODY = HoldersAtLimit()


def full(limits: Iterable[RunsAtOnce], live: Mapping[tuple[int, int | None], int]) -> HoldersAtLimit:
    """The holders at their limit, from limits and live runs. A user's own limit overrides the one for everyone. Pure."""
    most = {(row.workspace_id, row.whose): row.runs_at_once for row in limits}
    of_workspace: Counter[int] = Counter()
    users = {}
    for (workspace_id, user_id), count in live.items():
        of_workspace[workspace_id] += count
        if user_id is None:
            continue
        own = most.get((workspace_id, str(user_id)), most.get((workspace_id, EVERYONE)))
        if own is not None and count >= own:
            users[workspace_id, user_id] = own
    workspaces = {}
    for workspace_id, count in of_workspace.items():
        together = most.get((workspace_id, WORKSPACE))
        if together is not None and count >= together:
            workspaces[workspace_id] = together
    return HoldersAtLimit(workspaces, users)


def full_holders(session: Session) -> HoldersAtLimit:
    limits = key_queries.limits_on_runs(session)
    return full(limits, key_queries.live_by_holder(session)) if limits else NOBODY
