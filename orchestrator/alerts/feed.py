"""Alerts as an Atom feed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from xml.etree import ElementTree as ET

from orchestrator.alerts.tables import Alert

ATOM = "http://www.w3.org/2005/Atom"


def atom(
    alerts: Sequence[Alert], base_url: str, now: datetime, *, self_url: str | None = None, title: str = "Benchyard alerts"
) -> bytes:
    """Alerts in the given order, newest first, without characters that XML cannot hold. `self_url` is the feed's address."""
    self_url = self_url or f"{base_url}/api/alerts/feed"
    ET.register_namespace("", ATOM)
    feed = ET.Element(f"{{{ATOM}}}feed")
    _text(feed, "title", title)
    _text(feed, "id", self_url)
    _text(feed, "updated", (alerts[0].at if alerts else now).isoformat())
    _link(feed, self_url, "self")
    author = ET.SubElement(feed, f"{{{ATOM}}}author")
    _text(author, "name", "Benchyard")
    for alert in alerts:
        entry = ET.SubElement(feed, f"{{{ATOM}}}entry")
        _text(entry, "title", alert.title)
        _text(entry, "id", f"urn:benchyard:alert:{alert.uid}")
        _text(entry, "updated", alert.at.isoformat())
        ET.SubElement(entry, f"{{{ATOM}}}category", term=alert.kind)
        if alert.run_id:
            _link(entry, f"{base_url}/runs/{alert.run_id}", "alternate")
        _text(entry, "content", alert.title)
    data: bytes = ET.tostring(feed, encoding="utf-8", xml_declaration=True)
    return data


def _text(parent: ET.Element, name: str, text: str) -> None:
    ET.SubElement(parent, f"{{{ATOM}}}{name}").text = "".join(
        char for char in text if char in "\t\n\r" or (char >= " " and not "\ud800" <= char <= "\udfff" and char < "\ufffe")
    )


def _link(parent: ET.Element, href: str, rel: str) -> None:
    ET.SubElement(parent, f"{{{ATOM}}}link", href=href, rel=rel)
