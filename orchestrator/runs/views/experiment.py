"""The form that starts runs, as typed: one run, or a grid of models, benchmarks, instance types and repeats. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.dashboard.rendering.typed import number, whole
from orchestrator.runs.labels.labels import typed_tags

WHOLE = ("sample_size", "samples_per_problem", "seed", "concurrency", "priority")
LISTS = ("difficulty", "platform", "category")
USUAL: Mapping[str, object] = {"samples_per_problem": 1, "seed": 0, "concurrency": 8, "priority": 0}
OPTIONS = {
    "samples_per_problem": "--samples",
    "seed": "--seed",
    "concurrency": "--concurrency",
    "priority": "--priority",
    "budget_usd": "--budget",
    "after": "--after",
    "before": "--before",
    "name": "--name",
    "note": "--note",
}
FLAGS = {"batch": "--half-price", "exclude_flagged": "--exclude-flagged"}
REPEATED = {
    "benchmarks": "--benchmark",
    "difficulty": "--difficulty",
    "platform": "--platform",
    "category": "--category",
    "ids": "--id",
    "tags": "--tag",
}


@dataclass(frozen=True)
class Experiment:
    """The fields of the form as typed."""

    models: tuple[str, ...]
    benchmarks: tuple[str, ...]
    types: tuple[str, ...]
    lists: Mapping[str, tuple[str, ...]]
    texts: Mapping[str, str]

    @classmethod
    def of(cls, form: Mapping[str, Sequence[str]]) -> Experiment:
        def several(name: str) -> tuple[str, ...]:
            return tuple(dict.fromkeys(value.strip() for value in form.get(name, ()) if value.strip()))

        texts = {name: values[-1].strip() for name, values in form.items() if values}
        lists = {name: several(name) for name in LISTS}
        return cls(several("model"), several("benchmark"), several("instance_type"), lists, texts)

    @property
    def repeats(self) -> int:
        return self.whole("repeats", 1)

    def is_grid(self) -> bool:
        return len(self.models) > 1 or len(self.types) > 1 or self.repeats != 1

    def runs(self, benchmarks: int) -> int:
        """The number of runs; those of a grid have one benchmark each."""
        if not self.is_grid():
            return 1
        return len(self.models) * benchmarks * max(1, len(self.types)) * self.repeats

    def whole(self, name: str, otherwise: int) -> int:
        text = self.texts.get(name, "")
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else otherwise

    def shape(self) -> dict[str, Any]:
        """What one run and a grid have in common. A text that is no number stays text, and the API says what is wrong."""
        body: dict[str, Any] = {"benchmarks": list(self.benchmarks) or None}
        for name in WHOLE:
            if text := self.texts.get(name):
                body[name] = whole(text)
        if text := self.texts.get("budget_usd"):
            body["budget_usd"] = number(text)
        if text := self.texts.get("deadline_min"):
            body["deadline_s"] = int(text) * 60 if text.isdecimal() and len(text) < 9 else text
        body |= {name: True for name in ("batch", "exclude_flagged") if self.texts.get(name)}
        body |= {name: list(values) for name, values in self.lists.items() if values}
        body |= {name: self.texts[name] for name in ("after", "before", "name") if self.texts.get(name)}
        if ids := self.texts.get("ids", "").split():
            body["ids"] = ids
        if tags := typed_tags(self.texts.get("tags", "")):
            body["tags"] = tags
        return body

    def run_body(self, model: str | int | None = None) -> dict[str, Any]:
        body = {**self.shape(), "model_id": model if model is not None else self.models[0] if self.models else ""}
        if note := self.texts.get("note"):
            body["note"] = note
        if self.types:
            body["instance_type"] = self.types[0]
        return body

    def grid_body(self) -> dict[str, Any]:
        body = {**self.shape(), "models": list(self.models), "runs_per_instance_type": self.repeats}
        if self.types:
            body["instance_types"] = list(self.types)
        return body

    def as_yaml(self) -> str:
        """For `benchyard batch run`, one field a line."""
        lines = [(name, value) for name, value in self.grid_body().items() if value is not None and USUAL.get(name) != value]
        return "\n".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in lines)

    def as_command(self) -> str:
        """The line that does the same; several machines or repeats need a file, which is the YAML."""
        if len(self.types) > 1 or self.repeats != 1:
            return "benchyard batch run experiment.yaml"
        body = self.run_body()
        words = ["benchyard", "run"]
        for model in self.models:
            words += ["--model", model]
        words += ["--sample-size", str(body.get("sample_size", ""))]
        for name, option in REPEATED.items():
            for value in body.get(name) or ():
                words += [option, str(value)]
        for name, option in OPTIONS.items():
            if name in body and USUAL.get(name) != body[name]:
                words += [option, str(body[name])]
        if self.types:
            words += ["--instance-type", self.types[0]]
        if "deadline_s" in body:
            words += ["--deadline", f"{self.texts['deadline_min']}m"]
        words += [option for name, option in FLAGS.items() if name in body]
        return shlex.join(words)
