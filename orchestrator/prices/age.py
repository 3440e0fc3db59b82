"""How old a price may be before it is no longer taken for granted. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

OLD_AFTER = timedelta(days=90)


def age_warning(entered_at: datetime | None, now: datetime, *, free: bool = False) -> str | None:
    """A sentence if the prices are older than 90 days, else None."""
    if free or entered_at is None or now - entered_at <= OLD_AFTER:
        return None
    days = (now - entered_at).days
    return f"The prices are {days} days old (of {entered_at.date()}): check them at the provider."
