"""What a caller may do, in steps: look, start and stop work, schedule it, everything in a workspace, everything; and, apart
from these, agents. People have roles, which come to the same steps. Pure."""

from __future__ import annotations

import re
from enum import StrEnum

TASK_WORDS = ("claim", "heartbeat", "complete", "fail")
FOR_TASK_RUNNERS = frozenset(f"{prefix}/{word}" for prefix in ("", "/api/tasks") for word in TASK_WORDS)
FOR_AGENTS = frozenset({"/api/agents/claim", "/api/agents/report"}) | FOR_TASK_RUNNERS
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Scope(StrEnum):
    READ = "read"  #: may look at everything but tokens, webhooks and share links, which are secrets or hold some
    RUN = "run"  #: may also start, cancel, retry and regrade runs and batches, grade stored answers, run a schedule now,
    #: import and rate traces, and have evals written and executed
    SCHEDULE = "schedule"  #: may also make, pause and remove schedules
    ADMIN = "admin"  #: may do everything in its workspace; if an owner made it, everything
    OWNER = "owner"  #: what owners may do: also change what all workspaces share. No token is made with it
    AGENT = "agent"  #: may run containers for this installation on another machine, and nothing else

    def allows(self, needed: Scope) -> bool:
        if Scope.AGENT in (self, needed):
            return self in (needed, Scope.OWNER)
        return _STEPS.index(self) >= _STEPS.index(needed)


class Role(StrEnum):
    VIEWER = "viewer"  #: may look
    MEMBER = "member"  #: may also start, stop and schedule work
    ADMIN = "admin"  #: may do everything in the workspace, and say who else is in it
    OWNER = "owner"  #: may do everything in every workspace, and change what they share: models, datasets, machines

    @property
    def scope(self) -> Scope:
        return _SCOPES[self]


_SCOPES = {Role.VIEWER: Scope.READ, Role.MEMBER: Scope.SCHEDULE, Role.ADMIN: Scope.ADMIN, Role.OWNER: Scope.OWNER}
_STEPS = (Scope.READ, Scope.RUN, Scope.SCHEDULE, Scope.ADMIN, Scope.OWNER)
_SECRETS = re.compile(
    r"(/api/tokens|/api/audit|/audit|/api/alerts/webhooks|/api/share-links|/settings|/members|/runs/delete)(/.*)?", re.DOTALL
)
_EVERYBODY = re.compile(r"/api/users(/.*)?", re.DOTALL)
"""Shows people of all workspaces."""
_OWN = re.compile(r"(/api/account|/account|/logout|/api/auth)(/.*)?", re.DOTALL)
"""About the caller alone."""
_SHARED = re.compile(
    r"(/api/(models|datasets|agents)|/(models|datasets)|/members/(workspaces|users))(/.*)?|/api/workspaces", re.DOTALL
)
"""What all workspaces share: everybody may look, owners may change."""
_OWNERS = re.compile(r"/api/audit/prune|/api/keys/rotate")
"""For owners alone."""
_OWN_KEYS = re.compile(r"/api/keys(/\d+)?|/keys(/\d+/remove)?")
"""Everybody who may run has keys of their own; the workspace's are for admins, which their handlers see to."""
_SCHEDULES = re.compile(r"/api/schedules(/.*)?|/schedules/(new|[^/]+/(pause|remove))", re.DOTALL)
_WORK = re.compile(
    r"/api/(container-runs|runs|batches|grades|quotes)"
    r"|/api/container-runs/[^/]+/(cancel|retry|regrade|pin|unpin)"
    r"|/api/batches/[^/]+/(end|retry)"
    r"|/api/schedules/.+/run"
    r"|/api/(traces|eval-sets)|/api/eval-sets/[^/]+/(feedback|generate)|/api/evals/[^/]+/(execute|contradictions)"
    r"|/api/jobs/[^/]+/(cancel|retry|dismiss)"
    r"|/eval-sets|/eval-sets/[^/]+/(label|generate)|/evals/[^/]+/(execute|contradictions)|/jobs/[^/]+/(cancel|retry|dismiss)"
    r"|/batches/[^/]+/(end|retry)"
    r"|/runs/new(/command)?|/runs/[^/]+/(cancel|retry|regrade|pin|unpin)"
    r"|/schedules/[^/]+/run"
)
_OPINION = re.compile(r"/api/eval-sets/[^/]+/feedback/.+", re.DOTALL)

_SPENDING = re.compile(
    r"/api/(container-runs|runs|batches)|/api/(container-runs|batches|jobs)/[^/]+/retry|/api/schedules/.+/run"
    r"|/api/eval-sets/[^/]+/generate|/api/evals/[^/]+/execute"
    r"|/runs/new(/command)?|/(runs|batches)/[^/]+/retry|/schedules/[^/]+/run"
)


def spends(method: str, path: str) -> bool:
    """Whether a request starts something that asks models. The ledger counts in any case; this says no early."""
    return method == "POST" and _SPENDING.fullmatch(path) is not None


def needed(method: str, path: str) -> Scope:
    """What a request asks of its caller. What is not known here needs the most."""
    if method == "POST" and path in FOR_AGENTS:
        return Scope.AGENT
    if _OWNERS.fullmatch(path) or _EVERYBODY.fullmatch(path):
        return Scope.OWNER
    if _OWN.fullmatch(path):
        return Scope.READ
    if _SECRETS.fullmatch(path) and (method in SAFE_METHODS or not _SHARED.fullmatch(path)):
        return Scope.ADMIN
    if method in SAFE_METHODS:
        return Scope.READ
    work = method == "POST" and _WORK.fullmatch(path)
    if work or _OWN_KEYS.fullmatch(path) or (method == "DELETE" and _OPINION.fullmatch(path)):
        return Scope.RUN
    if _SCHEDULES.fullmatch(path):
        return Scope.SCHEDULE
    return Scope.OWNER if _SHARED.fullmatch(path) else Scope.ADMIN
