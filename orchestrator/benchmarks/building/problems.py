"""Turns a row of a benchmark's records into a problem: its fields, its rendered prompt, its target in one form per judge.

Pure. Templates are the user's, so this runs in a process of its own with limits (`rendering`), never in the service.
"""

from __future__ import annotations

import ast
import hashlib
import json
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from orchestrator.benchmarks.definition import Definition, TargetIs
from runner.contract.numbers import as_decimal
from runner.contract.rules.grading import By, usable_pattern
from runner.contract.rules.instructions import INSTRUCTIONS

LETTERS = string.ascii_uppercase
MAX_PROMPT_CHARS = 2_000_000
MAX_ID_CHARS = 200
TEXTS = ("difficulty", "category", "title", "entry", "context")


class Unusable(ValueError):
    """The row cannot be scored; the text is one sentence with the reason."""


@dataclass(frozen=True)
class Question:
    """A row read by the definition's fields."""

    values: Mapping[str, Any]
    """What templates see: the columns, and `input`, `choices`, `options`, `category` and so on."""
    target: Any


class ProblemMaker:
    """Makes problems by one definition; raises `Unusable` if a template of it cannot be compiled."""

    def __init__(self, definition: Definition, example_rows: Sequence[Mapping[str, Any]] = ()) -> None:
        self._definition = definition
        self._environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False, cache_size=0)
        self._environment.filters["fromjson"] = json.loads
        self._compiled: dict[str, Template] = {}
        prompt = definition.prompt
        grader = definition.judge.grader
        for source in (prompt.template, prompt.system, *([grader.rubric] if grader else [])):
            self._template(source)
        self._places_examples = "examples" in meta.find_undeclared_variables(self._environment.parse(prompt.template))
        self._examples = [self._question(number, row) for number, row in enumerate(example_rows, start=1)]

    def problem(self, number: int, row: Mapping[str, Any]) -> dict[str, Any]:
        """The index entry and the record of one row. Raises `Unusable`."""
        question = self._question(number, row)
        values = dict(question.values)
        examples = self._examples_for(question)
        text = self._render(self._definition.prompt.template, {**values, "examples": examples})
        if examples and not self._places_examples:
            text = f"{examples}\n\n{text}"
        if not text.strip():
            raise Unusable("its prompt is empty")
        record = {
            "prompt": text,
            "system": self._render(self._definition.prompt.system, values),
            "target": question.target,
            **{name: values[name] for name in ("entry", "context") if values.get(name)},
            **({"choices": len(values["choices"])} if self._definition.judge.by is By.CHOICE else {}),
            **self._for_judge(question),
        }
        return {"entry": self._entry(number, values), "record": {key: value for key, value in record.items() if value != ""}}

    def _for_judge(self, question: Question) -> dict[str, str]:
        """What a model that judges is told about the problem; the answer is not known yet."""
        grader = self._definition.judge.grader
        if grader is None:
            return {}
        rubric = self._render(grader.rubric, {**question.values, "target": question.target})
        if not rubric.strip():
            raise Unusable("its rubric is empty")
        return {"question": _text(question.values["input"]), "rubric": rubric}

    def _question(self, number: int, row: Mapping[str, Any]) -> Question:
        fields, judge = self._definition.fields, self._definition.judge
        values: dict[str, Any] = dict(row)
        for name in TEXTS:
            if (source := getattr(fields, name)) is not None:
                values[name] = _text(self._field(source, row))
        choices, labels = self._choices(row)
        order = shuffled(self._id(number, values), len(choices)) if fields.shuffle else list(range(len(choices)))
        if choices:
            values["choices"] = [choices[index] for index in order]
            values["options"] = "\n".join(
                f"{letter}. {choices[index]}" for letter, index in zip(LETTERS, order, strict=False)
            )
        values["input"] = self._field(fields.input, {**row, **values})
        if values["input"] is None or (isinstance(values["input"], str) and not values["input"].strip()):
            raise Unusable(f"its input ({fields.input[:60]}) is empty")
        if judge.pattern is not None and "target" not in fields.model_fields_set:
            return Question(values, judge.pattern)
        if judge.by is By.MODEL and "target" not in fields.model_fields_set and fields.target not in row:
            return Question(values, "")
        given = self._field(fields.target, {**row, **values, **({"choices": choices} if choices else {})})
        if given is None or (isinstance(given, str) and not given.strip()):
            raise Unusable(f"its target ({fields.target[:60]}) is empty")
        if judge.by is By.CHOICE:
            right = right_choice(given, choices, labels, fields.target_is)
            return Question(values, LETTERS[order.index(right)])
        return Question(values, target_of(judge.by, given))

    def _choices(self, row: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """The choices, and the labels that the record gives them, if any."""
        source = self._definition.fields.choices
        if source is None:
            return [], []
        given: Any = [self._field(name, row) for name in source] if isinstance(source, tuple) else self._field(source, row)
        labels: list[str] = []
        given = _parsed(given)
        if isinstance(given, dict) and isinstance(given.get("text"), list):
            labels = [str(label) for label in given.get("label") or []]
            given = given["text"]
        if not isinstance(given, list) or not 1 < len(given) <= len(LETTERS):
            raise Unusable(f"its choices ({source}) are not a list of 2 to {len(LETTERS)} texts")
        return [_text(choice).strip() for choice in given], labels

    def _field(self, source: str, row: Mapping[str, Any]) -> Any:
        if "{{" in source or "{%" in source:
            return self._render(source, row)
        if source not in row:
            raise Unusable(f"there is no column {source!r}; there are {', '.join(sorted(map(str, row)))[:300]}")
        return row[source]

    def _examples_for(self, question: Question) -> str:
        chosen = self._definition.prompt.examples
        if chosen is None:
            return ""
        fitting = [
            example
            for example in self._examples
            if chosen.same is None or example.values.get(chosen.same) == question.values.get(chosen.same)
        ]
        shown = []
        for example in fitting[: chosen.count]:
            if chosen.template is not None:
                shown.append(self._render(chosen.template, {**example.values, "target": example.target}))
            else:
                asked = self._render(self._definition.prompt.template, {**example.values, "examples": ""})
                shown.append(f"{asked.strip()}\n{_text(example.target)}")
        return "\n\n".join(shown)

    def _entry(self, number: int, values: Mapping[str, Any]) -> dict[str, str]:
        fields = self._definition.fields
        entry = {
            "id": self._id(number, values),
            **{name: str(values.get(name) or "") for name in ("difficulty", "category", "title")},
        }
        if fields.date is not None and (day := _text(self._field(fields.date, values)).strip()[:10]):
            try:
                entry["date"] = date.fromisoformat(day).isoformat()
            except ValueError:
                raise Unusable(f"its date {day!r} is not of the form 2026-01-31") from None
        return entry

    def _id(self, number: int, values: Mapping[str, Any]) -> str:
        source = self._definition.fields.id
        problem_id = str(number) if source is None else _text(self._field(source, values)).strip()
        if not problem_id or len(problem_id) > MAX_ID_CHARS or not problem_id.isprintable():
            raise Unusable(f"its id {problem_id[:50]!r} is empty, longer than {MAX_ID_CHARS} characters or not printable")
        return problem_id

    def _template(self, source: str) -> Template:
        if source not in self._compiled:
            try:
                self._compiled[source] = self._environment.from_string(source)
            except TemplateError as error:
                raise Unusable(f"the template {source[:60]!r} cannot be read: {error}") from None
        return self._compiled[source]

    def _render(self, source: str, values: Mapping[str, Any]) -> str:
        parts, size = [], 0
        try:
            for part in self._template(source).generate(values):
                parts.append(part)
                if (size := size + len(part)) > MAX_PROMPT_CHARS:
                    raise Unusable(f"the template {source[:60]!r} gives more than {MAX_PROMPT_CHARS} characters")
        except Unusable:
            raise
        except (MemoryError, RecursionError) as error:
            raise Unusable(f"the template {source[:60]!r} needs too much memory ({type(error).__name__})") from None
        except Exception as error:  # a template may raise whatever its expressions raise
            raise Unusable(f"the template {source[:60]!r} cannot be filled in: {str(error)[:300]}") from None
        return "".join(parts)


def shuffled(problem_id: str, count: int) -> list[int]:
    """An order of `count` choices that depends on the id alone, so that every installation asks the same question."""
    return sorted(range(count), key=lambda index: hashlib.sha256(f"{problem_id}\n{index}".encode()).digest())


def target_of(by: By, given: Any) -> Any:
    """The target in the form that the judge expects. Raises `Unusable`."""
    match by:
        case By.CHOICE:
            raise ValueError("the target of a choice depends on the choices: see right_choice")
        case By.NUMBER:
            if as_decimal(_text(given)) is None:
                raise Unusable(f"its target {_text(given)[:60]!r} is no number")
            return _text(given)
        case By.ANY_OF:
            accepted = _parsed(given)
            accepted = accepted if isinstance(accepted, list) else [given]
            if not accepted:
                raise Unusable("its target is an empty list")
            return [_text(answer) for answer in accepted]
        case By.REGEX:
            return usable_pattern(_text(given))
        case By.JSON:
            return _parsed(given)
        case By.INSTRUCTIONS | By.INSTRUCTIONS_LOOSE | By.INSTRUCTIONS_SHARE:
            return _instructions(given)
        case By.STDIN:
            return _tests(given)
        case By.ASSERTIONS | By.MATH:  # the text of an interval is no JSON list
            values = given if isinstance(given, list) else [given]
            return [_text(value) for value in values]
        case By.VALUE:
            return _expression(given)
        case By.PYTHON:
            raise ValueError("the problems of a Python file are its records: see python_file")
        case By.EXACT | By.CONTAINS | By.MODEL:
            return _text(given)


def right_choice(given: Any, choices: Sequence[str], labels: Sequence[str], form: TargetIs | None) -> int:
    """The index of the right choice. Without a form, labels are tried first, then choices, letters and indices."""
    text = _text(given).strip()
    named = {
        TargetIs.LABEL: list(labels),
        TargetIs.TEXT: list(choices),
        TargetIs.LETTER: list(LETTERS[: len(choices)]),
        TargetIs.INDEX: [str(index) for index in range(len(choices))],
    }
    for names in named.values() if form is None else [named[form]]:
        if text in names:
            return names.index(text)
    raise Unusable(f"its target {text[:60]!r} names none of its {len(choices)} choices{f' by {form}' if form else ''}")


def _tests(given: Any) -> list[dict[str, str]]:
    tests = _parsed(given)
    if isinstance(tests, dict):
        inputs, outputs = (tests.get(name) or tests.get(f"{name}s") for name in ("input", "output"))
        if isinstance(inputs, list) and isinstance(outputs, list) and len(inputs) == len(outputs):
            tests = [{"input": one, "output": other} for one, other in zip(inputs, outputs, strict=True)]
    if not isinstance(tests, list) or not tests:
        raise Unusable("its target is not a list of tests with input and output")
    if not all(isinstance(test, dict) and {"input", "output"} <= test.keys() for test in tests):
        raise Unusable("its target is not a list of tests with input and output")
    return [{name: _text(test[name]) for name in ("input", "output")} for test in tests]


def _instructions(given: Any) -> list[dict[str, Any]]:
    """Each with its id and the arguments that it needs; published records have all other arguments as null."""
    entries = _parsed(given)
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise Unusable("its target is not a list of instructions with id and arguments")
    instructions = []
    for entry in entries:
        name, arguments = str(entry.get("id")), entry.get("arguments") or {}
        if name not in INSTRUCTIONS:
            raise Unusable(f"there is no instruction {name[:60]!r}")
        missing = [argument for argument in INSTRUCTIONS[name] if arguments.get(argument) is None]
        if missing:
            raise Unusable(f"its instruction {name} lacks {', '.join(missing)}")
        instructions.append({"id": name, "arguments": {argument: arguments[argument] for argument in INSTRUCTIONS[name]}})
    return instructions


def _expression(given: Any) -> str:
    """A text is a Python expression already; other values are written as one."""
    text = given.strip() if isinstance(given, str) else repr(given)
    try:
        ast.parse(f"({text}\n)", mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise Unusable(f"its target {text[:60]!r} is no Python expression") from None
    return text


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _parsed(value: Any) -> Any:
    """Columns of tables often hold JSON as text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
