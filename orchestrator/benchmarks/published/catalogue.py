"""The published benchmarks that ship as files of the ordinary format, and what people want to know before they add one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from orchestrator.benchmarks.definition import Definition
from orchestrator.benchmarks.service import parsed


@dataclass(frozen=True)
class Published:
    """What a file does not say. Counts and sizes are those of the pinned revision."""

    problems: int
    download_mb: float
    """About; of everything that is downloaded."""
    gated: bool = False
    """Whether the hub asks people to accept terms first."""
    differs: str = ""
    """How scores are made differently from the authors' own, for people."""


_GENERATED = "The model writes its choice; the authors compare the likelihoods of the choices."

PUBLISHED: Mapping[str, Published] = {
    "aime_2024": Published(30, 0.1),
    "aime_2025": Published(30, 0.1),
    "arc_challenge": Published(1172, 0.2, differs=_GENERATED),
    "arc_easy": Published(2376, 0.4, differs=_GENERATED),
    "gpqa_diamond": Published(198, 1.0, gated=True, differs="The order of the choices is fixed per question."),
    "math_500": Published(500, 0.5, differs="Answers are compared by math-verify, not by the authors' rules for texts."),
    "mmlu": Published(14042, 3.6, differs=_GENERATED),
    "truthfulqa_mc1": Published(817, 0.3, differs=_GENERATED),
}


def published_text(name: str) -> str:
    """The file of a published benchmark."""
    return files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")


@cache
def published(name: str) -> Definition | None:
    """None if no benchmark of this name ships."""
    return parsed(published_text(name)) if name in PUBLISHED else None
