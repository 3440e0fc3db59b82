"""Formats words and numbers for people. Pure. Text of the service may come from a model: `clean` sanitises it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

GIB = 1 << 30
MIB = 1 << 20
_INVISIBLE = frozenset(
    [*range(0x20), *range(0x7F, 0xA0), 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF]
)
_VISIBLE = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _INVISIBLE}
_ONE_LINE = {**_VISIBLE, 0x0A: " ", 0x0D: " ", 0x09: " "}
_LINES = {code: replacement for code, replacement in _VISIBLE.items() if code not in (0x0A, 0x09)}


def clean(text: object, *, lines: bool = False) -> str:
    """`text` with control characters shown as escapes. One line unless `lines`."""
    visible = str(text).encode("utf-8", "backslashreplace").decode()
    if lines:
        return visible.replace("\r\n", "\n").translate(_LINES)
    return visible.translate(_ONE_LINE)


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def interval(score: dict[str, Any] | None) -> str:
    """The 95 % interval of a score."""
    if not score or score.get("low") is None or score.get("high") is None:
        return "–"
    if score.get("metric") == "mean":
        return f"{score['low']:.3f} – {score['high']:.3f}"
    return f"{100 * score['low']:.1f} – {100 * score['high']:.1f} %"


def estimate(score: dict[str, Any] | None, name: str = "estimate") -> str:
    """A score: a share of passed items as 73.1 %, a mean value as 0.731."""
    value = (score or {}).get(name)
    return f"{value:.3f}" if value is not None and score and score.get("metric") == "mean" else percent(value)


def size(amount: float | None) -> str:
    if amount is None:
        return "–"
    if amount >= GIB:
        return f"{amount / GIB:.3g} GiB"
    return f"{amount / MIB:.0f} MiB" if amount >= MIB else f"{amount / 1024:.0f} KiB"


def money(usd: float | None) -> str:
    if usd is None:
        return "–"
    if usd == 0:
        return "$0"
    return f"${usd:.2f}" if usd >= 0.995 else f"${usd:.{max(2, 1 - math.floor(math.log10(usd)))}f}"


def cost(usd: float | None, known_usd: float = 0.0, unpriced_calls: int = 0) -> str:
    """The cost of model calls. An unknown cost is shown as unknown, never as zero."""
    if usd is not None:
        return money(usd)
    if not known_usd:
        return "unknown"
    return f"at least {money(known_usd)}, {unpriced_calls} call{'' if unpriced_calls == 1 else 's'} without a price"


def cost_of(row: dict[str, Any]) -> str:
    """The cost of a run, a batch or a cost line of the API."""
    return cost(row["cost_usd"], row.get("known_cost_usd", 0.0), row.get("unpriced_calls", 0))


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def ago(text: str | None, now: datetime) -> str:
    """How long ago, in one unit."""
    if (at := moment(text)) is None:
        return "–"
    return f"{span((now - at).total_seconds())} ago"


def span(seconds: float) -> str:
    seconds = max(0.0, seconds)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def took(run: dict[str, Any], now: datetime) -> str:
    start, end = moment(run.get("started_at")), moment(run.get("completed_at"))
    return span(((end or now) - start).total_seconds()) if start else "–"


def short_ids(ids: Sequence[str], least: int = 8) -> dict[str, str]:
    """Maps each id to its prefix, using the shortest length that distinguishes all; ids created together begin alike."""
    length = least
    unique = set(ids)
    while length < max(map(len, unique), default=0) and len({id_[:length] for id_ in unique}) < len(unique):
        length += 1
    return {id_: id_[:length].removesuffix("-") for id_ in unique}


def outcomes_sentence(outcomes: dict[str, int]) -> str:
    """`31 passed, 3 wrong_answer`, most frequent first after passed."""
    order = sorted(outcomes.items(), key=lambda pair: (pair[0] != "passed", -pair[1], pair[0]))
    return ", ".join(f"{count} {clean(name)}" for name, count in order if count) or "nothing yet"
