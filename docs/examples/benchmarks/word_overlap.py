"""A metric between 0 and 1: how many words of the reference an answer has, and how many of its own it adds (F1)."""

import re
from collections import Counter

from benchyard_task import Record, Score

NAME = "word-overlap"
DESCRIPTION = "Short answers, scored by the words that they share with a reference."
RECORDS = [
    {"id": "tower", "question": "Who built the Eiffel Tower?", "reference": "the company of Gustave Eiffel"},
    {"id": "moon", "question": "Who first walked on the Moon?", "reference": "Neil Armstrong"},
    {"id": "penicillin", "question": "Who discovered penicillin?", "reference": "Alexander Fleming"},
]
FIELDS = {"id": "id"}


def words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.casefold()))


def prompt(record: Record) -> str:
    return f"{record['question']} Answer in at most five words."


def score(record: Record, answer: str) -> Score:
    given, wanted = words(answer), words(record["reference"])
    shared = sum((given & wanted).values())
    if not shared:
        return Score(0, reason="no word of the reference")
    precision, recall = shared / sum(given.values()), shared / sum(wanted.values())
    return Score(
        2 * precision * recall / (precision + recall),
        passed=recall == 1,
        reason=f"{shared} of {sum(wanted.values())} words of the reference, {sum(given.values())} words in all",
    )
