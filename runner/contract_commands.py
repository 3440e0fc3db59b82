"""The part of the contract about command benchmarks: what is run and measured, and what a repeat came to. A leaf, like
`runner.contract`."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from runner.message import Message

LARGEST_FIGURE = 1e100
"""What is larger is no measurement, and its square would be no number."""


class Better(StrEnum):
    """Which way of a figure is the good one."""

    SMALLER = "smaller"
    LARGER = "larger"


class FigureRule(Message):
    """Where a figure is found in what the command wrote: by a pattern, a JSON path, or in a JSON line of its name."""

    name: str = ""
    """Empty with a pattern: each of its named groups is a figure."""
    unit: str = ""
    better: Better = Better.SMALLER
    pattern: str | None = None
    json_path: str | None = None


class CommandTask(Message):
    """A command, and how often it is run."""

    name: str
    image: str
    argv: list[str] = Field(min_length=1)
    env: dict[str, str] = {}
    workdir: str | None = None
    repeats: int = Field(ge=1)
    warmups: int = Field(default=0, ge=0)
    timeout_s: float = Field(default=600.0, gt=0)
    figures: list[FigureRule] = []


class Figure(Message):
    """A number with a name that the command said of itself."""

    name: str
    value: float = Field(allow_inf_nan=False)
    unit: str = ""
    better: Better = Better.SMALLER


class RepeatFacts(Message):
    """One repeat of a command, beside its outcome and usage."""

    exit_code: int | None = None
    """None when a signal ended it."""
    signal: int | None = None
    user_s: float = 0.0
    system_s: float = 0.0
    throttled_s: float | None = None
    """How long it was held back by its share of the cores, where the kernel says so."""
    figures: list[Figure] = []
    output: str = ""
    """The beginning and the end of what it wrote."""
    output_bytes: int = 0
