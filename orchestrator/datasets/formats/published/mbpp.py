"""MBPP in its three forms: the full set, the sanitized one, and EvalPlus' MBPP+.

Ids are `MBPP/<number>`. The category is the split of the full set (given by the numbers), so the usual 500 test problems can
be selected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from orchestrator.datasets.formats.published.humaneval import inputs_of
from orchestrator.datasets.formats.records import Found, LeftOut, Unusable, read_records, text, texts
from orchestrator.datasets.formats.source import Source
from orchestrator.datasets.packs.pack import Entry

SPLITS = (("prompt", 10), ("test", 510), ("validation", 600), ("train", 974))


@dataclass(frozen=True)
class Mbpp:
    adapter: str = "mbpp"
    description: str = "974 small Python tasks in one sentence, checked by three assertions each."
    licence: str = "CC-BY-4.0"
    origin: str = "google-research/mbpp"

    def read(self, source: Source) -> Iterator[Found | LeftOut]:
        return read_records(source, mbpp_problem)


@dataclass(frozen=True)
class MbppPlus:
    adapter: str = "mbpp_plus"
    description: str = "378 MBPP tasks with about 35 times more tests, compared with a reference solution."
    licence: str = "Apache-2.0"
    origin: str = "evalplus/mbppplus"

    def read(self, source: Source) -> Iterator[Found | LeftOut]:
        return read_records(source, mbpp_plus_problem)


def mbpp_problem(raw: dict[str, Any]) -> tuple[Entry, dict[str, Any]]:
    number = _number(raw.get("task_id"))
    tests = texts(raw, "test_list")
    if not tests:
        raise Unusable("there is no test")
    record = {
        "task_id": f"MBPP/{number}",
        "text": text(raw, "text" if "text" in raw else "prompt"),
        "code": text(raw, "code"),
        "test_list": tests,
        "test_imports": texts(raw, "test_imports") if "test_imports" in raw else [],
        "test_setup_code": raw.get("test_setup_code") or "",
    }
    if not isinstance(record["test_setup_code"], str):
        raise Unusable("test_setup_code is no text")
    return Entry(id=f"MBPP/{number}", category=_split(number)), record


def mbpp_plus_problem(raw: dict[str, Any]) -> tuple[Entry, dict[str, Any]]:
    number = _number(raw.get("task_id"))
    record = {field: text(raw, field) for field in ("prompt", "entry_point", "canonical_solution")}
    if not record["entry_point"].isidentifier():
        raise Unusable(f"entry_point {record['entry_point'][:40]!r} is not a function name")
    entry = Entry(id=f"MBPP/{number}", category=_split(number), title=record["entry_point"])
    assertion = raw.get("assertion")
    extra = {"assertion": assertion} if isinstance(assertion, str) else {}
    return entry, {"task_id": entry.id, **record, **extra, **inputs_of(raw)}


def _number(task_id: Any) -> int:
    """11, "11", "MBPP/11" and EvalPlus' "Mbpp/11" are the same problem."""
    tail = str(task_id).rpartition("/")[2]
    if isinstance(task_id, bool) or not tail.isascii() or not tail.isdigit():
        raise Unusable("task_id is missing or no number")
    return int(tail)


def _split(number: int) -> str:
    return next((name for name, last in SPLITS if number <= last), "")
