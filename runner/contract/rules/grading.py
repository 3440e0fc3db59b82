"""How a benchmark that a file describes finds and judges answers. The orchestrator reads these rules from the user's
file; the runner applies them."""

from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer, model_validator

from runner.contract.message import Message
from runner.contract.rules.model_judge import ModelJudge
from runner.contract.rules.patterns import BadPattern, compiled
from runner.contract.rules.python_file import PythonFile

DEFINED = "defined"
"""The adapter of benchmarks that a file describes."""


class Find(StrEnum):
    """What part of the model's text is its answer. Thinking is removed first."""

    TEXT = "text"  #: all of it, without surrounding white space
    LAST_LINE = "last_line"  #: the last line that is not blank
    CODE = "code"  #: the last code block
    LETTER = "letter"  #: the last stated letter of a choice
    NUMBER = "number"  #: the last stated number
    BOXED = "boxed"  #: what is in the last \\boxed{...}, or the last stated answer
    REGEX = "regex"  #: the last match of `pattern`: its first group, or all of it
    JSON = "json"  #: the last JSON value in the text, or what `path` names in it


class AnswerRule(Message):
    find: Find = Find.TEXT
    pattern: str | None = None
    path: str | None = Field(default=None, max_length=500)

    @field_validator("pattern")
    @classmethod
    def _pattern_compiles(cls, pattern: str | None) -> str | None:
        return pattern if pattern is None else usable_pattern(pattern)

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        if (self.find is Find.REGEX) != (self.pattern is not None):
            raise ValueError("`find: regex` needs a `pattern`, and only it takes one")
        if self.path is not None and self.find is not Find.JSON:
            raise ValueError("only `find: json` takes a `path`")
        return self


class By(StrEnum):
    """How an answer is compared with the record's target."""

    EXACT = "exact"  #: it equals the target
    ANY_OF = "any_of"  #: it equals one of the targets
    CONTAINS = "contains"  #: it contains the target, or one of them
    REGEX = "regex"  #: `pattern`, or the target as a pattern, matches somewhere in it
    NUMBER = "number"  #: it equals the target as a number, within `tolerance`
    CHOICE = "choice"  #: it is the letter of the right choice
    JSON = "json"  #: it equals the target as a JSON value, whatever the order of keys
    MATH = "math"  #: it equals the target as mathematics in LaTeX, by symbolic computation
    INSTRUCTIONS = "instructions"  #: it follows every instruction of the target
    INSTRUCTIONS_LOOSE = "instructions_loose"  #: the same, whatever its first and last line and its asterisks
    INSTRUCTIONS_SHARE = "instructions_share"  #: its score is the share of instructions that it follows
    VALUE = "value"  #: as a Python expression, it has the value of the target
    STDIN = "stdin"  #: as a program, it gives the expected output for each input
    ASSERTIONS = "assertions"  #: as a program, it satisfies the target's assertions
    MODEL = "model"  #: a model says so, by a rubric
    PYTHON = "python"  #: a function of the benchmark's own Python file says what it is worth


CODE = frozenset({By.STDIN, By.ASSERTIONS})
FOLLOWED = frozenset({By.INSTRUCTIONS, By.INSTRUCTIONS_LOOSE, By.INSTRUCTIONS_SHARE})
EXECUTED = CODE | FOLLOWED | {By.MATH, By.VALUE, By.PYTHON}
"""What is judged in the sandbox."""


class Ignore(StrEnum):
    """Differences that do not count when texts are compared."""

    CASE = "case"
    PUNCTUATION = "punctuation"
    ARTICLES = "articles"  #: the words a, an and the
    WHITESPACE = "whitespace"  #: runs of white space count as one blank


class JudgeRule(Message):
    by: By
    ignore: list[Ignore] = []
    pattern: str | None = None
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    relative: bool = False
    """Whether the tolerance is a share of the target."""
    cpu_s: Annotated[float, Field(gt=0, le=600)] | None = None
    """CPU seconds for one test of a program or one comparison, if not the usual limit."""
    grader: ModelJudge | None = None
    """The model that judges, if one does."""

    @field_validator("pattern")
    @classmethod
    def _pattern_compiles(cls, pattern: str | None) -> str | None:
        return pattern if pattern is None else usable_pattern(pattern)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.pattern is not None and self.by is not By.REGEX:
            raise ValueError("only `by: regex` takes a `pattern`")
        if (self.tolerance or self.relative) and self.by is not By.NUMBER:
            raise ValueError("only `by: number` takes a `tolerance`")
        if self.ignore and self.by not in (By.EXACT, By.ANY_OF, By.CONTAINS):
            raise ValueError(f"`by: {self.by}` compares no texts, so it takes no `ignore`")
        if self.cpu_s is not None and self.by not in EXECUTED:
            raise ValueError(f"only what is judged in the sandbox takes `cpu_s`: {', '.join(sorted(EXECUTED))}")
        if (self.grader is not None) != (self.by is By.MODEL):
            raise ValueError("`by: model` needs `model` and `rubric`, and only it takes them")
        return self

    @model_serializer(mode="wrap")
    def _without_later_fields(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Digests cover this form: a field that was added later is left out while it is unset, so that they stay valid."""
        return {name: value for name, value in handler(self).items() if name != "grader" or value is not None}


class GradingRules(Message):
    """What the runner needs of a definition, beside the records: rendered prompts are in the records."""

    answer: AnswerRule
    judge: JudgeRule
    prompt_version: str = Field(max_length=100)
    program: PythonFile | None = None
    """The user's file, if the benchmark is one."""

    @model_validator(mode="after")
    def _has_its_program(self) -> Self:
        if (self.program is not None) != (self.judge.by is By.PYTHON):
            raise ValueError("`by: python` needs a Python file, and only it has one")
        return self

    @model_serializer(mode="wrap")
    def _without_later_parts(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Digests cover this form: a field that was added later is left out while it is unset, so that they stay valid."""
        return {name: value for name, value in handler(self).items() if name != "program" or value is not None}


def usable_pattern(pattern: str) -> str:
    try:
        compiled(pattern)
    except BadPattern as error:
        raise ValueError(f"the pattern cannot be used: {error}") from None
    return pattern
