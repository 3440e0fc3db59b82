"""Formats numbers, times and foreign text for pages. Pure; nothing here produces HTML: templates escape everything."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any

from orchestrator.stats.summary import Metric

DASH = "–"
PASS_RATE = Metric.SHARE.value
_STEPS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
# Control characters, and those that change the direction of text: pages must show what is really there.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def percent(share: float | None) -> str:
    return DASH if share is None else f"{100 * share:.1f} %"


def points(share: float) -> str:
    """The difference of two shares, with its sign."""
    return f"{100 * share:+.1f}".replace("-", "−")


def interval(low: float | None, high: float | None, metric: str = PASS_RATE) -> str:
    if low is None or high is None:
        return ""
    return f"{100 * low:.1f} {DASH} {100 * high:.1f} %" if metric == PASS_RATE else f"{low:.3f} {DASH} {high:.3f}"


def estimate(value: float | None, metric: str = PASS_RATE) -> str:
    """A score: a share of passed items as 73.1 %, a mean value as 0.731."""
    return percent(value) if value is None or metric == PASS_RATE else f"{value:.3f}"


def when(moment: datetime | None) -> str:
    """In UTC; the browser converts it to the reader's time zone."""
    return DASH if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def duration(seconds: float | None) -> str:
    if seconds is None:
        return DASH
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        days, hours = divmod(hours, 24)
        return f"{days} d {hours} h" if hours else f"{days} d"
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def size(count: float | None) -> str:
    if count is None:
        return DASH
    for step, unit in _STEPS:
        if count >= step:
            return f"{count / step:.3g} {unit}"
    return f"{count:.0f} B"


def money(usd: float | None) -> str:
    if usd is None:
        return DASH
    if usd == 0 or usd >= 0.01:
        return f"${usd:,.2f}"
    if usd < 0.0001:
        return "under $0.0001"
    digits = max(2, 1 - math.floor(math.log10(usd)))
    return f"${usd:.{digits}f}"


def cost(spending: Any) -> str:
    """The cost of a run's or batch's calls. An unknown cost is shown as unknown, never as zero."""
    amount = spending.cost_usd if spending.cost_usd is not None else spending.known_cost_usd
    if not spending.unpriced_calls:
        return money(amount)
    if not amount:
        return "unknown"
    calls = "1 call" if spending.unpriced_calls == 1 else f"{spending.unpriced_calls:,} calls"
    return f"at least {money(amount)} ({calls} without a price)"


def payer(kind_and_name: str) -> str:
    """Whose provider key paid, from the kind of payer and its name as the ledger gives them."""
    kind, _, name = kind_and_name.partition(" ")
    return {"system": "service", "workspace": "workspace", "user": name or "user"}.get(kind, kind_and_name)


_REST_CALL = re.compile(r"\s*[;:,(]?\s*\b(?:GET|POST|PUT|PATCH|DELETE) /api/[^;.)]*[;)]?")


def for_people(detail: str) -> str:
    """An error's sentence without the hint for programs which REST call helps."""
    sentence = _REST_CALL.sub("", detail).strip(" ;:,")
    return sentence[:1].upper() + sentence[1:] if sentence else detail


def without(title: str, model: str | None) -> str:
    """The title of an alert where the name of its model stands beside it already."""
    for sign in (": ", ", "):
        if model and title.startswith(model + sign):
            rest = title[len(model + sign) :]
            return rest[:1].upper() + rest[1:]
    return title


def number(count: float | None) -> str:
    return DASH if count is None else f"{count:,.0f}"


def words(name: str) -> str:
    """`wrong_answer` as "wrong answer"."""
    return name.replace("_", " ")


def visible(text: str) -> str:
    """Foreign text with invisible characters made visible."""
    return _UNSEEN.sub(lambda match: f"⟨{ord(match.group()):04X}⟩", text.replace("\r\n", "\n"))


def short(text: str, chars: int = 300) -> str:
    """The beginning of a foreign text, for places that hold a word or a sentence."""
    return visible(text if len(text) <= chars else f"{text[:chars]}…")
