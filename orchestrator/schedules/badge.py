"""A model's state in a few words and a colour, for a badge. Pure."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

from orchestrator.schedules.drift.series import DriftVerdict
from orchestrator.stats.summary import Metric

COLOURS = {
    DriftVerdict.NO_CHANGE: "brightgreen",
    DriftVerdict.BETTER: "blue",
    DriftVerdict.WORSE: "red",
    DriftVerdict.NOT_COMPARABLE: "lightgrey",
}

FILLS = {"brightgreen": "#3c8a00", "blue": "#0a6ea8", "red": "#c0392b", "lightgrey": "#6b6b6b"}
"""Dark enough for white text."""
PER_CHARACTER, EDGE = 6.6, 12


def badge_of(slug: str, score: dict[str, Any] | None, verdict: str | None) -> dict[str, str]:
    """Score with its interval, never a bare number; the verdict sets the colour."""
    if score is None or score.get("estimate") is None:
        return {"label": slug, "message": "no result yet", "color": "lightgrey"}
    if score.get("metric") == Metric.MEAN:
        message = f"{score['estimate']:.2f} ({score['low']:.2f} to {score['high']:.2f})"
    else:
        message = f"{100 * score['estimate']:.0f} % ({100 * score['low']:.0f} to {100 * score['high']:.0f})"
    if score.get("pooled_over", 1) > 1:
        message += f" over {score['pooled_over']} benchmarks"
    if verdict in (DriftVerdict.WORSE, DriftVerdict.BETTER):
        message += f", {verdict}"
    return {"label": slug, "message": message, "color": COLOURS[DriftVerdict(verdict)] if verdict else "lightgrey"}


def svg(label: str, message: str, color: str) -> str:
    """The badge as an SVG of one line; widths assume a common sans-serif font of 11 pixels."""
    left, right = (round(EDGE + PER_CHARACTER * len(text)) for text in (label, message))
    words = f"{escape(label)}: {escape(message)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img">'
        f"<title>{words}</title>"
        f'<rect width="{left}" height="20" fill="#444"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{FILLS[color]}"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="{left / 2:g}" y="14" textLength="{left - EDGE}">{escape(label)}</text>'
        f'<text x="{left + right / 2:g}" y="14" textLength="{right - EDGE}">{escape(message)}</text>'
        "</g></svg>"
    )
