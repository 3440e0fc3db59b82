"""A model's state in a few words and a colour, for a badge. Pure."""

from __future__ import annotations

from typing import Any

from orchestrator.schedules.drift import Verdict

COLOURS = {
    Verdict.NO_CHANGE: "brightgreen",
    Verdict.BETTER: "blue",
    Verdict.WORSE: "red",
    Verdict.NOT_COMPARABLE: "lightgrey",
}


def badge_of(slug: str, score: dict[str, Any] | None, verdict: str | None) -> dict[str, str]:
    """Score with its interval, never a bare number, and the verdict as the colour."""
    if score is None or score.get("estimate") is None:
        return {"label": slug, "message": "no result yet", "color": "lightgrey"}
    low, high = 100 * score["low"], 100 * score["high"]
    message = f"{100 * score['estimate']:.0f} % ({low:.0f} to {high:.0f})"
    if verdict in (Verdict.WORSE, Verdict.BETTER):
        message += f", {verdict}"
    return {"label": slug, "message": message, "color": COLOURS[Verdict(verdict)] if verdict else "lightgrey"}
