"""A judge without a model: a rubric of points that a program can check, each worth the same."""

import re
from collections.abc import Callable

from benchyard_task import Record, Score

NAME = "polite-reply"
DESCRIPTION = "Replies to customers, judged by a rubric: greeting, the order's number, an apology, no promise, length."
RECORDS = [
    {"id": "late", "order": "A-17", "complaint": "My parcel is two weeks late."},
    {"id": "broken", "order": "B-4", "complaint": "The cup arrived in pieces."},
]
FIELDS = {"id": "id"}

RUBRIC: dict[str, Callable[[Record, str], bool]] = {
    "greets": lambda record, reply: bool(re.match(r"\s*(dear|hello|hi|good)\b", reply, re.IGNORECASE)),
    "names the order": lambda record, reply: record["order"] in reply,
    "apologises": lambda record, reply: bool(re.search(r"\b(sorry|apolog)", reply, re.IGNORECASE)),
    "promises nothing": lambda record, reply: not re.search(r"\b(guarantee|promise)", reply, re.IGNORECASE),
    "is short": lambda record, reply: len(reply.split()) <= 80,
}


def prompt(record: Record) -> str:
    return f"Reply to this customer, in at most 80 words. Order {record['order']}: {record['complaint']}"


def score(record: Record, answer: str) -> Score:
    missed = [name for name, holds in RUBRIC.items() if not holds(record, answer)]
    value = 1 - len(missed) / len(RUBRIC)
    return Score(value, reason=f"missed: {', '.join(missed)}" if missed else "every point")
