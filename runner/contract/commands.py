"""Command benchmarks in the contract: what is run and measured, and the result of a repeat."""

import base64
import binascii
import hashlib
import re
from enum import StrEnum

from pydantic import Field, field_validator

from runner.contract.message import Count, Message, Seconds

LARGEST_FIGURE = 1e100
"""A larger number is no measurement, and its square would overflow."""
MAX_FILES = 20
MAX_FILES_BYTES = 256 * 1024
"""For all files of a command together, because they are stored with every run. Larger files belong in the image."""
MAX_FILE_NAME = 200
_PART = re.compile(r"[^\x00-\x1f\x7f/\\]{1,100}")


class Better(StrEnum):
    """Whether a higher or a lower figure is better."""

    SMALLER = "smaller"
    LARGER = "larger"


class FigureRule(Message):
    """How to find a figure in the command's output: by a pattern, a JSON path, or a JSON line of that name."""

    name: str = ""
    """Empty if a pattern is given: each of its named groups is a figure."""
    unit: str = ""
    better: Better = Better.SMALLER
    pattern: str | None = None
    json_path: str | None = None


def file_name_problem(name: str) -> str | None:
    """Returns why a file of this name cannot be put into a working directory; None if it can."""
    parts = name.split("/")
    if len(name) > MAX_FILE_NAME or len(parts) > 8:
        return f"is longer than {MAX_FILE_NAME} characters or has more than 8 parts"
    if any(part in ("", ".", "..") or not _PART.fullmatch(part) for part in parts):
        return "is not a relative path such as bench.py or data/input.txt, without .. and without backslashes"
    return None


def file_names_problem(names: list[str]) -> str | None:
    """Returns why these files cannot be in one directory; None if they can."""
    unique = set(names)
    if len(unique) < len(names):
        return f"{next(name for name in names if names.count(name) > 1)!r} is named twice"
    for name in names:
        parts = name.split("/")
        for depth in range(1, len(parts)):
            if (folder := "/".join(parts[:depth])) in unique:
                return f"{folder!r} cannot be both a file and a directory"
    return None


class CommandFile(Message):
    """A file that is put into the command's working directory before each repeat."""

    name: str
    content: str
    """Base64."""
    executable: bool = False

    @field_validator("name")
    @classmethod
    def _relative(cls, name: str) -> str:
        if (problem := file_name_problem(name)) is not None:
            raise ValueError(problem)
        return name

    @field_validator("content")
    @classmethod
    def _encoded(cls, content: str) -> str:
        try:
            base64.b64decode(content, validate=True)
        except binascii.Error:
            raise ValueError("is not base64") from None
        return content

    @property
    def data(self) -> bytes:
        return base64.b64decode(self.content)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


class CommandTask(Message):
    """A command and its number of repeats."""

    name: str
    image: str
    argv: list[str] = Field(min_length=1)
    env: dict[str, str] = {}
    workdir: str | None = None
    repeats: int = Field(ge=1)
    warmups: int = Field(default=0, ge=0)
    timeout_s: float = Field(default=600.0, gt=0)
    figures: list[FigureRule] = []
    files: list[CommandFile] = []
    """If there are files, each repeat gets a new working directory that holds them."""


class Figure(Message):
    """A named number that the command reported."""

    name: str
    value: float = Field(allow_inf_nan=False)
    unit: str = ""
    better: Better = Better.SMALLER


class RepeatFacts(Message):
    """One repeat of a command, apart from its outcome and usage."""

    exit_code: int | None = Field(default=None, ge=-(1 << 31), le=1 << 32)
    """None if a signal ended it."""
    signal: int | None = Field(default=None, ge=0, le=1 << 16)
    user_s: Seconds = 0.0
    system_s: Seconds = 0.0
    throttled_s: Seconds | None = None
    """How long its CPU quota held it back, if the kernel reports it."""
    figures: list[Figure] = []
    output: str = ""
    """The beginning and the end of its output."""
    output_bytes: Count = 0
    self_reported: bool = False
    """The figures come from a task runner, not from our kernel readings. Set by the orchestrator, never by a runner."""
