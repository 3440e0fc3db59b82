"""What the API server's refusals mean to us. Pure.

EngineError
  EngineUnreachable   no answer, or one that says nothing: 401, 429, 5xx, a page that is not the API server's
    RightMissing      403 because our account lacks a right
  NotThere            404
  Conflict            409: the name exists, or another writer was faster; 422: it has become another object
  NoRoom              403 because of a quota
  Refused             everything else, with the server's own words: an admission rule, an invalid field
"""

from __future__ import annotations

import json
import re

from orchestrator.engines.engine import EngineError, EngineUnreachable, NoRoom

CANNOT_ANSWER = frozenset({429, 500, 502, 503, 504})
_WITHOUT_RIGHT = re.compile(r"User \".*\" cannot \w+ resource|User \".*\" cannot \w+ path")
_OTHER_UID = re.compile(r"metadata\.uid: .* field is immutable")
"""The answer to a patch that was meant for an earlier object of that name."""
_MOST_CHARACTERS = 400


class NotThere(EngineError):
    """The cluster has no such object."""


class Conflict(EngineError):
    """The name is taken, or somebody else changed the object at the same time."""


class Refused(EngineError):
    """The API server refused the call; the message is its own."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class RightMissing(EngineUnreachable):
    """Our account lacks a right, so nothing is known about what was asked."""


def error_of(status: int, body: bytes, address: str) -> EngineError:
    """The error for an answer that is not a success. The API server explains itself with a Status object: a page of a proxy
    or load balancer in between says nothing about any pod, whatever its code."""
    words, by_the_server = server_words(body)
    if status in CANNOT_ANSWER or not (by_the_server or status == 401):
        return EngineUnreachable(f"Kubernetes at {address} cannot answer now ({status}): {words}")
    if status == 401:
        return EngineUnreachable(
            f"Kubernetes at {address} does not accept our credentials: check the service account, or BENCHYARD_KUBE_CONFIG. "
            f"({words})"
        )
    if status == 404:
        return NotThere(words)
    if status == 409 or (status == 422 and _OTHER_UID.search(words)):
        return Conflict(words)
    if status == 403 and "exceeded quota" in words:
        return NoRoom(f"The quota of the namespace is used up: {words}")
    if status == 403 and _WITHOUT_RIGHT.search(words):
        return RightMissing(
            f"Our account at {address} lacks a right: apply the role of deploy/kubernetes, "
            f"or ask `benchyard doctor --engine kubernetes`. ({words})"
        )
    return Refused(f"Kubernetes refused: {words}", status)


def server_words(body: bytes) -> tuple[str, bool]:
    """The message of a Status object and True, or the text itself and False."""
    text = body.decode("utf-8", "replace").strip()
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if isinstance(document, dict) and document.get("kind") == "Status":
        return str(document.get("message") or text)[: 4 * _MOST_CHARACTERS], True
    return text[:_MOST_CHARACTERS], False
