"""What one sample problem is: words, a reference, a slow twin of it, and where its tests come from.

Outputs are never written by hand: the builder asks the reference, and the tests compare the reference with the twin.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

#: A stdin problem's case is the text; a functional problem's case is the tuple of arguments.
Case = str | tuple[object, ...]
Difficulty = Literal["easy", "medium", "hard"]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One problem. Its question id is the name of the module that holds it."""

    title: str
    difficulty: Difficulty
    #: Day of the made-up contest, `YYYY-MM-DD`.
    date: str
    #: Markdown without the samples: the builder adds those from `public`.
    statement: str
    #: Source of a program (stdin) or of `class Solution` (functional) that answers every test well within a second.
    reference: str
    #: Source of an obviously right and usually slow solution, written another way.
    brute: str
    public: Sequence[Case]
    edges: Sequence[Case]
    #: One small random case; the private tests hold `small_count` of them.
    small: Callable[[Random], Case]
    small_count: int = 5
    #: Cases near the limits, always last so that cheap failures come first.
    large: Callable[[Random], Sequence[Case]]
    #: `name(arg: type, ...) -> type` for a functional problem, empty for a stdin problem.
    signature: str = ""

    @property
    def func_name(self) -> str | None:
        return self.signature.partition("(")[0] or None

    @property
    def arg_names(self) -> list[str]:
        inside = self.signature.partition("(")[2].rpartition(") ->")[0]
        return [part.split()[-1] for part in inside.split(":")[:-1]]

    @property
    def starter_code(self) -> str:
        if not self.signature:
            return ""
        name, _, rest = self.signature.partition("(")
        return f"class Solution:\n    def {name}(self, {rest}:\n        "


def text(*rows: object) -> str:
    """Lines of an input: strings as they are, other iterables joined by spaces."""
    return "".join(f"{_row(row)}\n" for row in rows)


def _row(row: object) -> str:
    if isinstance(row, Iterable) and not isinstance(row, str):
        return " ".join(map(str, row))
    return str(row)
