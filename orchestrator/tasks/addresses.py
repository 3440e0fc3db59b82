"""Signed URLs of a task, for its script and for the files that its runner uploads. Pure.

A signature is valid for one method and path, for a limited time. Access also ends with the attempt, which the caller checks.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from urllib.parse import urlencode

Sign = Callable[[str], str]
"""Signs a text with a secret of the installation."""


def script_path(task_id: str) -> str:
    return f"/tasks/{task_id}/command.sh"


def upload_path(task_id: str, name: str) -> str:
    return f"/tasks/{task_id}/artefacts/{name}"


def signed_url(sign: Sign, base: str, method: str, path: str, now: datetime, good_for: timedelta) -> str:
    expires = int((now + good_for).timestamp())
    return f"{base}{path}?" + urlencode({"expires": expires, "signature": sign(_text(method, path, expires))})


def is_good(
    sign: Sign, same: Callable[[str, str], bool], method: str, path: str, expires: int, signature: str, now: datetime
) -> bool:
    return now.timestamp() < expires and same(sign(_text(method, path, expires)), signature)


def _text(method: str, path: str, expires: int) -> str:
    return f"benchyard task address 1 {method} {path} {expires}"
