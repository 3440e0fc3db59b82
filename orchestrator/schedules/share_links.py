"""Addresses that show one thing to whoever has them: a badge of a model, a feed of alerts. Pure.

Services that fetch badges and feeds cannot send a token. So each address holds a key, computed from a secret of the
installation and what is shown: it cannot be guessed, says nothing about any other address, and ends with the secret.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.identifiers import same_token

FACT = "share_secret"
KEY_BYTES = 24


class Shown(StrEnum):
    BADGE = "badges"  #: the newest judged run of a model
    FEED = "feeds"  #: the alerts of a model
    ALL_ALERTS = "feed"  #: all alerts


@dataclass(frozen=True)
class ShareLinks:
    secret: str

    def key(self, shown: Shown, model_id: int | None = None) -> str:
        what = f"benchyard share 1: {shown.value} {'' if model_id is None else model_id}"
        digest = hmac.new(self.secret.encode(), what.encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest[:KEY_BYTES]).decode()

    def opens(self, given: str, shown: Shown, model_id: int | None = None) -> bool:
        return same_token(given, self.key(shown, model_id))

    def path(self, shown: Shown, model_id: int | None = None) -> str:
        middle = "" if model_id is None else f"/{model_id}"
        return f"/shared/{shown.value}{middle}/{self.key(shown, model_id)}"
