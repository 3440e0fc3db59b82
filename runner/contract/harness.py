"""Harness runs in the contract: another evaluation harness, started once, and how its results are read."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from runner.contract.commands import CommandFile
from runner.contract.message import Message

MAX_HARNESS_ITEMS = 100_000
MAX_ID_CHARS = 300
MAX_TEXT_CHARS = 32_768
"""For the input and for the output of one item. The harness's own log has the whole texts."""
MAX_REASON_CHARS = 2_000


class ResultsFormat(StrEnum):
    """What wrote the results, which decides how they are read."""

    JSON_LINES = "jsonl"  #: one JSON object per line: id, passed or score, optional input, output and reason
    INSPECT = "inspect"  #: Inspect's logs, `.eval` or `.json`
    LM_EVAL = "lm-eval"  #: lm-evaluation-harness: `samples_*.jsonl` beside `results_*.json`
    JUNIT = "junit"  #: JUnit XML, as pytest and most test tools write it
    NEMO_EVALUATOR = "nemo-evaluator"  #: `results.yml` of NeMo Evaluator: one score per task


class ResultsRule(Message):
    format: ResultsFormat
    paths: list[str] = Field(min_length=1)
    """Patterns such as `logs/*.eval` or `out/**/samples_*.jsonl`, relative to the working directory."""


ExitCode = Annotated[int, Field(ge=0, le=255)]


class HarnessTask(Message):
    """A harness: a program of an allowed image that asks the run's model and writes results."""

    name: str
    image: str
    argv: list[str] = Field(min_length=1)
    env: dict[str, str] = {}
    files: list[CommandFile] = []
    """They are in the working directory when the harness starts."""
    results: ResultsRule
    exit_codes: list[ExitCode] = [0]
    """The exit codes of a harness that has done its work; any other is a crash."""
