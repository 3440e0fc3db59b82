"""Says in words what an audit entry's route did, and where its object is shown. Pure.

An entry holds method and route, or a name that a handler gave. Routes follow one pattern, so verb and noun are read from it:
a new route gets a sentence without a change here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ROUTE = re.compile(r"(GET|POST|PUT|PATCH|DELETE) (/\S*)")
NOUNS = {
    "container-runs": "run",
    "runs": "run",
    "grades": "grading",
    "batches": "batch",
    "schedules": "schedule",
    "alerts": "alert",
    "webhooks": "notification",
    "deliveries": "message",
    "sharing": "shared links",
    "models": "model",
    "providers": "provider",
    "benchmarks": "benchmark",
    "datasets": "dataset",
    "eval-sets": "eval set",
    "evals": "eval",
    "traces": "trace",
    "labels": "label",
    "jobs": "job",
    "tokens": "token",
    "keys": "provider key",
    "limits": "limit",
    "members": "member",
    "workspaces": "workspace",
    "users": "user",
    "agents": "agent",
    "audit": "audit log",
    "backups": "backup",
    "sessions": "session",
    "prices": "price",
}
VERBS = {
    "cancel": "cancelled",
    "retry": "retried",
    "regrade": "regraded",
    "pin": "pinned",
    "unpin": "unpinned",
    "delete": "deleted",
    "remove": "removed",
    "revoke": "revoked",
    "rotate": "changed the secret of",
    "test": "sent a test to",
    "run": "started a run of",
    "pause": "paused or resumed",
    "resume": "resumed",
    "acknowledge": "acknowledged",
    "reopen": "reopened",
    "verify": "verified",
    "archive": "archived",
    "restore": "restored",
    "sync": "synced",
    "prune": "pruned",
    "dismiss": "dismissed",
    "failures": "changed",
    "prices": "changed the prices of",
}
SIGNS = {"/login": "signed in", "/logout": "signed out"}
NAMED = {"sign-in": "signed in", "sign-out": "signed out", "schedule fired": "started the scheduled run"}
METHODS = {"GET": "read", "POST": "added or changed", "PUT": "set", "PATCH": "changed", "DELETE": "removed"}
PLACES = {
    "container-runs": "runs",
    "runs": "runs",
    "batches": "batches",
    "schedules": "schedules",
    "models": "models",
    "datasets": "datasets",
    "benchmarks": "benchmarks",
    "eval-sets": "eval-sets",
    "evals": "evals",
    "alerts": "alerts",
    "jobs": "jobs",
}


@dataclass(frozen=True)
class ActionWords:
    text: str
    """Verb and noun: "cancelled the run"."""
    path: str | None
    """The page of the object, if it has one."""


def action_words(action: str, object_id: str) -> ActionWords:
    route = _ROUTE.fullmatch(action)
    if route is None:
        path = f"/runs/{object_id}" if action == "schedule fired" and object_id else None
        return ActionWords(NAMED.get(action, action.replace("_", " ").replace(".", " ")), path)
    method, path = route.groups()
    if path in SIGNS:
        return ActionWords(SIGNS[path], None)
    parts = [part for part in path.split("/") if part and part not in ("api", "settings", "new")]
    words = [part for part in parts if not part.startswith("{")]
    if words[-1:] == ["mutes"]:
        done = {"PUT": "muted", "DELETE": "unmuted"}.get(method, "muted or unmuted")  # the page has one form for both
        return ActionWords(f"{done} the alerts of model", f"/models/{object_id}" if object_id.isalnum() else None)
    if not words:
        return ActionWords(METHODS[method] + " a page", None)
    verb = VERBS.get(words[-1]) if method == "POST" and len(words) > 1 else None
    things = [word for word in words if word in NOUNS and not (verb and word == words[-1] and len(words) > 1)]
    noun = NOUNS[things[-1]] if things else words[0].replace("-", " ")
    on_one = parts[-1].startswith("{") or verb is not None
    if verb is None:
        new = "started" if noun in ("run", "batch") else "added"
        verb = new if method == "POST" and not on_one else METHODS[method]
    place = PLACES.get(words[0]) if object_id and things == things[:1] and "/" not in object_id else None
    article = "the" if on_one else "an" if noun[0] in "aeiou" and noun != "user" else "a"
    return ActionWords(f"{verb} {article} {noun}", f"/{place}/{object_id}" if place else None)
