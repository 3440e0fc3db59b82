"""Several turns: the model guesses a number, the file answers, and fewer guesses are worth more."""

import re

from benchyard_task import Message, Record, Score

NAME = "guess-the-number"
DESCRIPTION = "Find a number from 1 to 100; every guess is answered with higher or lower."
TURNS = 8
FIELDS = {"id": "number"}


def records() -> list[Record]:
    return [{"number": number} for number in (7, 42, 93)]


def prompt(record: Record) -> list[Message]:
    return [
        {"role": "system", "content": "You play a game. Answer with a number only."},
        {"role": "user", "content": "I think of a whole number from 1 to 100. What is your guess?"},
    ]


def guess(text: str) -> int | None:
    numbers = re.findall(r"\d+", text)
    return int(numbers[-1]) if numbers else None


def next_message(record: Record, messages: list[Message]) -> str | None:
    last = guess(messages[-1]["content"])
    if last == record["number"]:
        return None
    if last is None:
        return "That is no number. What is your guess?"
    return "Higher." if last < record["number"] else "Lower."


def score(record: Record, answer: str, messages: list[Message]) -> Score:
    guesses = sum(message["role"] == "assistant" for message in messages)
    if guess(answer) != record["number"]:
        return Score(0, reason=f"not found in {guesses} guesses")
    return Score(1 - (guesses - 1) / TURNS, passed=True, reason=f"found with guess {guesses}")
