"""The catalogue: every published benchmark that can be added by its name, and what people want to know before they do.

Some have an adapter of their own (`datasets/formats`), the others are files of the ordinary format, beside this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from orchestrator.benchmarks.definition import Definition
from orchestrator.benchmarks.service import parsed
from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.fetching.sources import FORMATS
from orchestrator.errors import NotFound


@dataclass(frozen=True)
class Facts:
    """What neither a file nor an adapter says. Of a file, counts and sizes are those of its pinned revision."""

    problems: int
    download_mb: float
    """About; of everything that is downloaded."""
    gated: bool = False
    """Whether the hub asks people to accept terms first."""
    differs: str = ""
    """How scores are made differently from the authors' own, for people."""


@dataclass(frozen=True)
class Entry:
    """A benchmark of the catalogue."""

    name: str
    description: str
    licence: str
    source: str
    facts: Facts
    definition: Definition | None
    """None if it has an adapter of its own."""


_GENERATED = "The model writes its choice; the authors compare the likelihoods of the choices."

_SENTENCES = "Sentences and capital words are counted by rules of our own instead of NLTK's trained model."

ADAPTERS: Mapping[str, Facts] = {
    "gsm8k": Facts(1319, 0.4, differs="No worked examples; numbers are compared as numbers."),
    "humaneval": Facts(164, 0.1, differs="The model writes the whole function."),
    "humaneval_plus": Facts(164, 1.0, differs="The model writes the whole function."),
    "livecodebench": Facts(1055, 4490.0),
    "livecodebench_self_repair": Facts(1055, 4490.0, differs="Programs are judged strictly before and after the repair."),
    "mbpp": Facts(974, 0.3, differs="No worked examples."),
    "mbpp_plus": Facts(378, 1.0),
    "mmlu_pro": Facts(12032, 4.1, differs="If an answer is stated several times, the last one counts."),
}
FILES: Mapping[str, Facts] = {
    "aime_2024": Facts(30, 0.1),
    "aime_2025": Facts(30, 0.1),
    "arc_challenge": Facts(1172, 0.2, differs=_GENERATED),
    "arc_easy": Facts(2376, 0.4, differs=_GENERATED),
    "bbh": Facts(6511, 1.0, differs="No worked examples; the authors show three with their reasoning."),
    "gpqa_diamond": Facts(198, 1.0, gated=True, differs="The order of the choices is fixed per question."),
    "ifeval": Facts(541, 0.3, differs=_SENTENCES),
    "ifeval_instructions": Facts(541, 0.3, differs=f"{_SENTENCES} The mean is taken over prompts."),
    "ifeval_loose": Facts(541, 0.3, differs=_SENTENCES),
    "livecodebench_execution": Facts(479, 0.2, differs="A call of the given function is no answer."),
    "livecodebench_test_output": Facts(442, 0.6),
    "math_500": Facts(500, 0.5, differs="Answers are compared by math-verify, not by the authors' rules for texts."),
    "mmlu": Facts(14042, 3.6, differs=_GENERATED),
    "simpleqa": Facts(4326, 2.0, differs="The judge is a model of your choice, with a rubric in our words."),
    "truthfulqa_mc1": Facts(817, 0.3, differs=_GENERATED),
}


BUILT_IN = ("gsm8k", "mmlu_pro")
"""Benchmarks with an adapter that a file describes as well, with the same prompts; the adapter is what is run."""


def built_in_text(name: str) -> str | None:
    """The file that says what the adapter of this name does, as a start for one's own; None if no file can say it."""
    if name not in BUILT_IN:
        return None
    return files("orchestrator.benchmarks").joinpath("built_in", f"{name}.yaml").read_text(encoding="utf-8")


def catalogue() -> list[Entry]:
    """All of it, by name."""
    return [entry(name) for name in sorted([*ADAPTERS, *FILES])]


def entry(name: str) -> Entry:
    if (definition := published(name)) is not None:
        return Entry(name, definition.description, definition.licence, definition.source, FILES[name], definition)
    if name not in ADAPTERS:
        known = ", ".join(sorted([*ADAPTERS, *FILES]))
        raise NotFound(f"The catalogue has no benchmark {name!r}. It has {known}.")
    form = FORMATS[name]
    return Entry(name, form.description, form.licence, form.origin, ADAPTERS[name], None)


def chosen(name: str, judge: str | None = None) -> Definition | None:
    """The definition to build: one that a model judges names the given judge. None if the benchmark has an adapter.

    Raises `BadSource` if a judge is missing or not needed.
    """
    definition = published(name)
    grader = definition.judge.grader if definition else None
    if grader is None:
        if judge is not None:
            raise BadSource(f"No model judges {name!r}; leave the judge out.")
        return definition
    assert definition is not None
    if judge is None:
        raise BadSource(
            f"A model judges {name!r}: name one of this installation, `benchyard benchmarks add {name} --judge MODEL`."
        )
    rule = definition.judge.model_copy(update={"grader": grader.model_copy(update={"model": judge})})
    return definition.model_copy(update={"judge": rule})


@cache
def published(name: str) -> Definition | None:
    """The definition of a benchmark that ships as a file; None if none of this name does."""
    return parsed(published_text(name)) if name in FILES else None


def refuse_choices(name: str, choices: Mapping[str, object]) -> None:
    """Raises `BadSource` if something is chosen that the file of a published benchmark fixes."""
    if chosen := [choice for choice, value in choices.items() if value is not None]:
        raise BadSource(
            f"The file of {name!r} fixes what is taken, so {', '.join(chosen)} cannot be chosen. "
            f"Save the file with `benchyard benchmarks catalogue {name}`, change it, and add it under a name of your own."
        )


def published_text(name: str) -> str:
    """The file of a published benchmark."""
    return files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
