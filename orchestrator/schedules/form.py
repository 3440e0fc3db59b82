"""When a schedule fires, as a form asks for it: a few usual rhythms, the fields of cron, or an expression. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

PRESETS = {
    "daily": "every day",
    "weekdays": "Monday to Friday",
    "weekly": "once a week",
    "monthly": "once a month",
    "hours": "every few hours",
    "fields": "cron, field by field",
    "free": "cron expression",
}
WEEKDAYS = {"MON": "Monday", "TUE": "Tuesday", "WED": "Wednesday", "THU": "Thursday", "FRI": "Friday", "SAT": "Saturday"}
WEEKDAYS |= {"SUN": "Sunday"}
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True)
class Rhythm:
    """The fields of the builder."""

    preset: str = "daily"
    at: str = "06:00"
    weekday: str = "MON"
    day: str = "1"
    every: str = "6"
    minute: str = "0"
    hour: str = "6"
    monthday: str = "*"
    month: str = "*"
    weekdays: str = "*"
    cron: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Rhythm:
        known = {name: given[name] for name in cls.__dataclass_fields__ if given.get(name)}
        if "preset" not in known and "cron" in known:
            known["preset"] = "free"
        return cls(**known)

    def expression(self) -> str:
        """As cron; what is not a time, a weekday or a number is left for the cron parser to refuse."""
        found = _TIME.fullmatch(self.at.strip())
        hour, minute = (int(found[1]), int(found[2])) if found else (6, 0)
        match self.preset:
            case "daily":
                return f"{minute} {hour} * * *"
            case "weekdays":
                return f"{minute} {hour} * * MON-FRI"
            case "weekly":
                return f"{minute} {hour} * * {self.weekday}"
            case "monthly":
                return f"{minute} {hour} {self.day} * *"
            case "hours":
                return f"{minute} */{self.every} * * *"
            case "fields":
                fields = (self.minute, self.hour, self.monthday, self.month, self.weekdays)
                return " ".join(each.replace(" ", "") for each in fields)
        return self.cron
