"""What a caller may do, as three steps: look, start and stop work, everything; and, apart from these, agents. Pure."""

from __future__ import annotations

import re
from enum import StrEnum

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Scope(StrEnum):
    READ = "read"  #: may look at everything but tokens, webhooks and share links, which are secrets or hold some
    RUN = "run"  #: may also start, cancel, retry and regrade runs and batches, grade stored answers, run a schedule now,
    #: import and rate traces, and have evals written and executed
    ADMIN = "admin"  #: may do everything
    AGENT = "agent"  #: may run containers for this installation on another machine, and nothing else

    def allows(self, needed: Scope) -> bool:
        if Scope.AGENT in (self, needed):
            return self in (needed, Scope.ADMIN)
        return _STEPS.index(self) >= _STEPS.index(needed)


_STEPS = (Scope.READ, Scope.RUN, Scope.ADMIN)
_SECRETS = re.compile(r"(/api/tokens|/api/audit|/audit|/api/alerts/webhooks|/api/share-links|/settings)(/.*)?", re.DOTALL)
_WORK = re.compile(
    r"/api/(container-runs|batches|grades|quotes)"
    r"|/api/container-runs/[^/]+/(cancel|retry|regrade)"
    r"|/api/batches/[^/]+/(end|retry)"
    r"|/api/schedules/.+/run"
    r"|/api/(traces|eval-sets)|/api/eval-sets/[^/]+/(feedback|generate)|/api/evals/[^/]+/execute|/api/jobs/[^/]+/(cancel|retry)"
    r"|/batches/[^/]+/(end|retry)"
    r"|/runs/new|/runs/[^/]+/(cancel|retry|regrade)"
    r"|/schedules/[^/]+/run"
)


def needed(method: str, path: str) -> Scope:
    """What a request asks of its caller. What is not known here needs the most."""
    if method == "POST" and path in ("/api/agents/claim", "/api/agents/report"):
        return Scope.AGENT
    if _SECRETS.fullmatch(path):
        return Scope.ADMIN
    if method in SAFE_METHODS or path == "/logout":
        return Scope.READ
    return Scope.RUN if method == "POST" and _WORK.fullmatch(path) else Scope.ADMIN
