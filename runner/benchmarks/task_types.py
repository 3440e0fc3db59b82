"""The types that a benchmark as a Python file imports from `benchyard_task`.

The text of this module is executed in the sandbox beside the user's file, so it needs the standard library only.
"""

from dataclasses import dataclass
from typing import Any, Literal, TypedDict

Record = dict[str, Any]
"""One row of the records: column name to value."""


class Message(TypedDict):
    """One message of a conversation with the model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Score:
    """What an answer is worth."""

    value: float
    """From 0 to 1."""
    passed: bool | None = None
    """Whether it counts as passed; None: if its value is 1."""
    reason: str = ""
    """For people, shown with the item."""
    answer: str | None = None
    """What was taken as the answer, if it is not the whole text."""
