"""A benchmark as a Python file: its source, and what is known of it without executing it."""

from typing import Annotated

from pydantic import Field

from runner.contract.message import Message

MAX_SOURCE_CHARS = 100_000
MOST_TURNS = 50


class PythonFile(Message):
    source: str = Field(max_length=MAX_SOURCE_CHARS)
    filename: str = Field(default="benchmark.py", max_length=200)
    turns: Annotated[int, Field(ge=1, le=MOST_TURNS)] = 1
    """How many answers the model may give; more than 1 only if the file has `next_message`."""
