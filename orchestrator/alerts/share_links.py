"""Addresses that need no token, for badges of models and feeds of alerts. Pure.

Services that fetch badges and feeds cannot send a token. So each address contains a key, computed from a secret of the
workspace and the content shown. It cannot be guessed, reveals nothing about other addresses, and expires with the secret.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.db.workspaces import DEFAULT_WORKSPACE
from orchestrator.system.identifiers import same_token

KEY_BYTES = 24
_ELSEWHERE = re.compile(r"w([1-9][0-9]{0,8})\..*", re.DOTALL)


def fact_of(workspace_id: int) -> str:
    """The name under which the secret of a workspace is stored."""
    return "share_secret" if workspace_id == DEFAULT_WORKSPACE else f"share_secret of {workspace_id}"


def workspace_of_key(key: str) -> int:
    """The workspace that a key names; it may still be invalid there."""
    match = _ELSEWHERE.fullmatch(key)
    return int(match[1]) if match else DEFAULT_WORKSPACE


class SharedResource(StrEnum):
    BADGE = "badges"  #: the newest judged run of a model
    FEED = "feeds"  #: the alerts of a model
    ALL_ALERTS = "feed"  #: all alerts
    LEADERBOARD = "leaderboard"  #: the leaderboard


@dataclass(frozen=True)
class ShareLinks:
    secret: str
    workspace_id: int = DEFAULT_WORKSPACE

    def key(self, resource: SharedResource, model_id: int | None = None) -> str:
        message = f"benchyard share 1: {resource.value} {'' if model_id is None else model_id}"
        digest = hmac.new(self.secret.encode(), message.encode(), hashlib.sha256).digest()
        text = base64.urlsafe_b64encode(digest[:KEY_BYTES]).decode()
        return text if self.workspace_id == DEFAULT_WORKSPACE else f"w{self.workspace_id}.{text}"

    def opens(self, candidate: str, resource: SharedResource, model_id: int | None = None) -> bool:
        return same_token(candidate, self.key(resource, model_id))

    def path(self, resource: SharedResource, model_id: int | None = None) -> str:
        middle = "" if model_id is None else f"/{model_id}"
        return f"/shared/{resource.value}{middle}/{self.key(resource, model_id)}"
