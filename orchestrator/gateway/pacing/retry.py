"""When to retry a failed try, and after how long: our policy, and what providers say in headers. Pure; time and
randomness are arguments."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from orchestrator.gateway.edge.errors import UpstreamError

RETRIED_STATUSES = frozenset({408, 409, 425, 429})
CROWDED_STATUSES = frozenset({429, 503, 529})


@dataclass(frozen=True)
class RetryPolicy:
    """Gives up after `max_tries` failures; if the provider is overloaded (`crowded`), only the time counts.

    `total_s` bounds everything from the first try to the last.
    """

    max_tries: int = 6
    total_s: float = 900.0
    base_s: float = 0.5
    longest_s: float = 60.0
    longest_crowded_s: float = 5.0  #: short, because the limiter holds calls back anyway

    def delay_s(self, error: UpstreamError, failures: int, spent_s: float, rng: random.Random) -> float | None:
        """Seconds until the next try after `failures` failures, or None to give up."""
        if not error.retry or (failures >= self.max_tries and not error.crowded):
            return None
        longest_s = self.longest_crowded_s if error.crowded else self.longest_s
        backoff = min(self.base_s * 2.0 ** min(failures - 1, 30), longest_s)
        delay = backoff * rng.uniform(0.5, 1.0)
        if error.retry_after_s is not None:
            # A little later than asked, and not all at once.
            delay = error.retry_after_s + rng.uniform(0.0, min(backoff, 0.1 * error.retry_after_s + 0.05))
        return delay if spent_s + delay <= self.total_s else None


def retried(status: int) -> bool:
    return status in RETRIED_STATUSES or status >= 500


LONGEST_S = 24 * 3600.0
EPOCH_S = 1e9
"""Larger numbers are points in time, not durations."""
_SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:([\d.]+)s)?(?:([\d.]+)ms)?")


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """How long the provider asks us to wait; header names in lower case."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return min(milliseconds / 1000, LONGEST_S)
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None:
        return min(seconds, LONGEST_S)
    return _until(text, now) if text else None


def exhausted_for_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """How long until a used-up limit is replenished, according to `anthropic-ratelimit-*`, `x-ratelimit-*` and
    `ratelimit-*` headers."""
    waits: list[float] = []
    for kind in ("requests", "tokens", "input-tokens", "output-tokens"):
        if _number(headers.get(f"anthropic-ratelimit-{kind}-remaining")) == 0:
            reset = headers.get(f"anthropic-ratelimit-{kind}-reset")
            waits.append(_until(reset, now) or 0.0)
        if _number(headers.get(f"x-ratelimit-remaining-{kind}")) == 0:
            waits.append(_span(headers.get(f"x-ratelimit-reset-{kind}"), now) or 0.0)
    for prefix in ("x-ratelimit", "ratelimit"):
        if _number(headers.get(f"{prefix}-remaining")) == 0:
            waits.append(_span(headers.get(f"{prefix}-reset"), now) or 0.0)
    return max(waits) if waits and max(waits) > 0 else None


def _number(text: str | None) -> float | None:
    """The largest value of a repeated header."""
    if not text:
        return None
    try:
        value = max(float(part) for part in text.split(","))
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _until(text: str | None, now: datetime) -> float | None:
    """Seconds until a time in RFC 3339 or HTTP format; 0 if it has passed."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(text)
        except ValueError:
            return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max((moment - now).total_seconds(), 0.0), LONGEST_S)


def _span(text: str | None, now: datetime) -> float | None:
    """Seconds in `1s`, `6m0s`, `120ms`, `1h2m3s` or a plain number, or until a time: a date, or seconds or milliseconds
    since 1970."""
    if not text:
        return None
    plain = _number(text)
    if plain is not None:
        if plain >= EPOCH_S:
            plain = max(plain / (1000 if plain >= EPOCH_S * 1000 else 1) - now.timestamp(), 0.0)
        return min(plain, LONGEST_S)
    match = _SPAN.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        return _until(text, now)
    try:
        days, hours, minutes, seconds, milliseconds = (float(part or 0) for part in match.groups())
    except ValueError:
        return None
    return min(days * 86400 + hours * 3600 + minutes * 60 + seconds + milliseconds / 1000, LONGEST_S)
