"""A model as judge: which model is asked, the verdicts it may give, and which of them count as passed."""

import re
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from runner.contract.message import Message

MAX_SAMPLES = 9
MAX_RUBRIC_CHARS = 100_000
_GRADE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,19}")

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class VerdictForm(StrEnum):
    """What the judge is asked to end with."""

    GRADE = "grade"  #: one of the names in `grades`
    NUMBER = "number"  #: a number from 0 to 1


USUAL_GRADES = {"C": 1.0, "I": 0.0}
"""Correct and incorrect."""
USUAL_PASS = {VerdictForm.GRADE: 1.0, VerdictForm.NUMBER: 0.5}


class ModelJudge(Message):
    model: Annotated[str, Field(min_length=1, max_length=200)]
    """The slug of the judge in the catalogue. A run names the model by its id, fixed when it is queued."""
    rubric: Annotated[str, Field(min_length=1, max_length=MAX_RUBRIC_CHARS)]
    """A template; each record holds it filled in."""
    verdict: VerdictForm = VerdictForm.GRADE
    grades: dict[str, Share] = Field(default={}, max_length=10)
    """What each grade is worth. Empty if the verdict is a number."""
    pass_at: Share | None = None
    """The least worth that counts as passed."""
    samples: int = Field(default=1, ge=1, le=MAX_SAMPLES)
    """How often the judge is asked about one answer. The majority decides."""

    @field_validator("grades")
    @classmethod
    def _grades_can_be_read(cls, grades: dict[str, float]) -> dict[str, float]:
        for name in grades:
            if not _GRADE.fullmatch(name):
                raise ValueError(f"the grade {name[:30]!r} is not a letter followed by letters, digits, _ or -")
        if len({name.casefold() for name in grades}) < len(grades):
            raise ValueError("two grades differ only in case")
        return grades

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.verdict is VerdictForm.NUMBER and self.grades:
            raise ValueError("`verdict: number` takes no `grades`")
        if not self.samples % 2:
            raise ValueError("`samples` must be odd, so that there is always a majority")
        if self.verdict is VerdictForm.GRADE and len({self.passes(worth) for worth in self.worths.values()}) != 2:
            raise ValueError(f"some `grades` must pass (worth at least {self.least:g}) and some must not")
        return self

    @property
    def worths(self) -> dict[str, float]:
        return self.grades or (USUAL_GRADES if self.verdict is VerdictForm.GRADE else {})

    @property
    def least(self) -> float:
        return USUAL_PASS[self.verdict] if self.pass_at is None else self.pass_at

    @property
    def partial(self) -> bool:
        """Whether an answer can be worth something between nothing and everything."""
        return self.verdict is VerdictForm.NUMBER or not set(self.worths.values()) <= {0.0, 1.0}

    def passes(self, worth: float) -> bool:
        return worth >= self.least


JUDGE_OPTIONS = tuple(ModelJudge.model_fields)
"""The names that stand beside `by: model` in a file."""
