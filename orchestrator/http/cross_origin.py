"""What pages of other sites may do here: call the API with a bearer token, if the operator listed their origin. Never with
the browser's cookie, and never where nothing is listed. Pure: the options of Starlette's layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
ASKED = ("authorization", "content-type", "idempotency-key", "last-event-id", "x-benchyard-workspace")
TOLD = ("content-disposition", "location", "retry-after", "x-request-id", "www-authenticate")
PREFLIGHT_S = 600


def cross_origin(origins: Sequence[str]) -> dict[str, Any]:
    return {
        "allow_origins": list(origins),
        "allow_methods": list(METHODS),
        "allow_headers": list(ASKED),
        "expose_headers": list(TOLD),
        "allow_credentials": False,
        "max_age": PREFLIGHT_S,
    }
