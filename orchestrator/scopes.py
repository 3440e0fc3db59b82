"""What callers may do, in steps: read, start and stop work, schedule it, everything in a workspace, everything; and,
separately, agents. People have roles, which map to these steps. Pure."""

from __future__ import annotations

from enum import StrEnum

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Scope(StrEnum):
    READ = "read"  #: may read everything except tokens, webhooks and share links, which are or contain secrets
    RUN = "run"  #: may also start, cancel, retry and regrade runs and batches, grade stored answers, run a schedule now,
    #: import and rate traces, and have evals written and executed
    SCHEDULE = "schedule"  #: may also create, pause and delete schedules
    ADMIN = "admin"  #: may do everything in its workspace; a token made by an owner, everything
    OWNER = "owner"  #: may also change what all workspaces share; no token can have it
    AGENT = "agent"  #: may run containers for this installation on another machine, and nothing else

    def allows(self, needed: Scope) -> bool:
        if Scope.AGENT in (self, needed):
            return self in (needed, Scope.OWNER)
        return _STEPS.index(self) >= _STEPS.index(needed)


class Role(StrEnum):
    VIEWER = "viewer"  #: may read
    MEMBER = "member"  #: may also start, stop and schedule work
    ADMIN = "admin"  #: may do everything in the workspace, and manage its members
    OWNER = "owner"  #: may do everything in every workspace, and change what they share: models, datasets, machines

    @property
    def scope(self) -> Scope:
        return _SCOPES[self]


_SCOPES = {Role.VIEWER: Scope.READ, Role.MEMBER: Scope.SCHEDULE, Role.ADMIN: Scope.ADMIN, Role.OWNER: Scope.OWNER}
_STEPS = (Scope.READ, Scope.RUN, Scope.SCHEDULE, Scope.ADMIN, Scope.OWNER)
