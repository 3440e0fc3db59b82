"""An alert as a message in the form of its receiver: Slack, Microsoft Teams, Discord, e-mail. Each links to what changed.
Pure. The signed message for programs is in `webhooks`."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any

from orchestrator.alerts.tables import Alert

LONG, TITLE = 2000, 250
GOOD, BAD, PLAIN = 0x137A3E, 0xB3261E, 0x7D5100
SHOWN_FLIPS = 5


class MessageFormat(StrEnum):
    STANDARD = "standard"  #: signed JSON (Standard Webhooks)
    SLACK = "slack"  #: an incoming webhook of Slack
    TEAMS = "teams"  #: a workflow of Microsoft Teams that posts an adaptive card
    DISCORD = "discord"  #: a webhook of Discord
    EMAIL = "email"  #: an address, mailto:team@example.org


def link(alert: Alert, base_url: str) -> str:
    """The page that says what changed."""
    return f"{base_url}/alerts/{alert.id}" if alert.id is not None else base_url


def body_for(form: MessageFormat, alert: Alert, base_url: str) -> bytes:
    """The body that a chat expects."""
    build = {MessageFormat.SLACK: _slack, MessageFormat.TEAMS: _teams, MessageFormat.DISCORD: _discord}[form]
    return json.dumps(build(alert, link(alert, base_url)), ensure_ascii=False, separators=(",", ":")).encode()


def mail_text(alert: Alert, base_url: str) -> tuple[str, str]:
    """Subject and text of an e-mail."""
    subject = f"[Benchyard] {_line(alert.title, 150)}"
    facts = [f"  {text}" for text in _flips(alert)]
    lines = [alert.title[:LONG], "", *facts, *([""] if facts else []), f"What changed: {link(alert, base_url)}", ""]
    return subject, "\n".join(lines)


def _flips(alert: Alert) -> list[str]:
    """The problems that flipped, the largest change first."""
    flips = alert.data.get("flipped") or []
    lines = [
        f"{_line(str(flip['problem_id']), 80)}: {100 * flip['before']:.0f} % → {100 * flip['now']:.0f} %"
        for flip in flips[:SHOWN_FLIPS]
    ]
    if len(flips) > SHOWN_FLIPS:
        lines.append(f"and {len(flips) - SHOWN_FLIPS} more")
    return lines


def _slack(alert: Alert, url: str) -> dict[str, Any]:
    title = _slack_text(alert.title[:LONG])
    blocks: list[dict[str, Any]] = [{"type": "section", "text": {"type": "mrkdwn", "text": f"{_sign(alert)} {title}"}}]
    if flips := _flips(alert):
        text = "\n".join(f"• {_slack_text(flip)}" for flip in flips)
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": text}})
    button = {"type": "button", "text": {"type": "plain_text", "text": "What changed"}, "url": url, "style": "primary"}
    blocks.append({"type": "actions", "elements": [button]})
    return {"text": f"{_sign(alert)} {title} <{url}|What changed>", "blocks": blocks}


def _teams(alert: Alert, url: str) -> dict[str, Any]:
    colour = {"drift.worse": "attention", "drift.better": "good"}.get(alert.kind, "warning")
    body: list[dict[str, Any]] = [
        {"type": "TextBlock", "text": _plain(alert.title[:LONG]), "wrap": True, "weight": "bolder", "color": colour}
    ]
    body += [{"type": "TextBlock", "text": _plain(flip), "wrap": True, "spacing": "none"} for flip in _flips(alert)]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        "actions": [{"type": "Action.OpenUrl", "title": "What changed", "url": url}],
    }
    return {
        "type": "message",
        "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}],
    }


def _discord(alert: Alert, url: str) -> dict[str, Any]:
    colour = {"drift.worse": BAD, "drift.better": GOOD, "run.failed": BAD}.get(alert.kind, PLAIN)
    embed: dict[str, Any] = {
        "title": _plain(_line(alert.title, TITLE)),
        "url": url,
        "color": colour,
        "timestamp": alert.at.isoformat(),
        "description": _plain("\n".join([*_flips(alert)])) + f"\n[What changed]({url})",
    }
    # A title with "@everyone" must not wake everyone.
    return {"username": "Benchyard", "embeds": [embed], "allowed_mentions": {"parse": []}}


def _sign(alert: Alert) -> str:
    return {"drift.worse": "🔻", "drift.better": "🔺", "webhook.test": "✅"}.get(alert.kind, "⚠️")


def _slack_text(text: str) -> str:
    """Slack reads commands and links in angle brackets; nothing of a foreign text may become one."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _plain(text: str) -> str:
    """Without Markdown's links and emphasis, which Teams and Discord read in text."""
    for character in "\\[]()*_`~|":
        text = text.replace(character, f"\\{character}")
    return text


def _line(text: str, chars: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= chars else f"{line[: chars - 1]}…"
