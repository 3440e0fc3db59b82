"""LiveCodeBench records, and users' own problems in the same layout: eleven text fields per line.

Tests are decoded into lists of `{input, output, testtype}`, metadata into an object. A record is unusable if a field is
missing, a test cannot be decoded, there are no tests, or its statements about its tests contradict each other.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.datasets.formats.json_array import json_items
from orchestrator.datasets.formats.published.pickled_text import ForeignPickle, pickled_text_pieces
from orchestrator.datasets.formats.records import Found, LeftOut, Unusable, read_records
from orchestrator.datasets.formats.source import Source
from orchestrator.datasets.packs.pack import Entry

FIELDS = (
    "question_title",
    "question_content",
    "platform",
    "question_id",
    "contest_id",
    "contest_date",
    "starter_code",
    "difficulty",
    "public_test_cases",
    "private_test_cases",
    "metadata",
)
_MAY_BE_ABSENT = {"contest_id": "", "contest_date": "", "starter_code": "", "private_test_cases": "[]", "metadata": "{}"}
MAX_TESTS_BYTES = 1 << 30
STEP = 1 << 20
"""Characters of base64 to decode at a time; four of them make three bytes."""
TEST_TYPES = frozenset({"stdin", "functional"})


@dataclass(frozen=True)
class LiveCodeBench:
    adapter: str = "livecodebench"
    description: str = "Contest problems of LeetCode, AtCoder and Codeforces with their dates: write a Python program."
    licence: str = "cc (statements belong to the contest sites)"
    origin: str = "livecodebench/code_generation_lite"

    def read(self, source: Source) -> Iterator[Found | LeftOut]:
        return read_records(source, problem)


@dataclass(frozen=True)
class SelfRepair(LiveCodeBench):
    """The same problems; a program that fails goes back to the model once."""

    adapter: str = "livecodebench_self_repair"
    description: str = "LiveCodeBench with one repair: a program that fails comes back with its first failed test."


def problem(raw: dict[str, Any]) -> tuple[Entry, dict[str, Any]]:
    """Returns entry and decoded record; raises `Unusable` with a reason. Removes the tests from `raw` to save memory."""
    missing = [field for field in FIELDS if field not in raw and field not in _MAY_BE_ABSENT]
    if missing:
        raise Unusable(f"field {', '.join(missing)} is missing")
    record: dict[str, Any] = {field: raw.get(field, _MAY_BE_ABSENT.get(field)) for field in FIELDS}
    texts = [f for f in FIELDS if f not in ("public_test_cases", "private_test_cases", "metadata", "question_id")]
    wrong = [field for field in texts if not isinstance(record[field], str)]
    if wrong:
        raise Unusable(f"field {', '.join(wrong)} is not a text")
    record["question_id"] = problem_id = str(record["question_id"])
    if not problem_id:
        raise Unusable("question_id is empty")
    raw.clear()
    record["metadata"] = _metadata(record["metadata"])
    for field in ("public_test_cases", "private_test_cases"):
        record[field] = _tests([record.pop(field)], field)
    record = {field: record[field] for field in FIELDS}
    _check(record)
    entry = Entry(
        id=problem_id,
        difficulty=record["difficulty"],
        date=_day(record["contest_date"]),
        platform=record["platform"],
        title=record["question_title"],
    )
    return entry, record


def _metadata(packed: Any) -> dict[str, Any]:
    try:
        value = json.loads(packed) if isinstance(packed, str) else packed
    except (ValueError, RecursionError):
        raise Unusable("metadata is not JSON") from None
    if not isinstance(value, dict):
        raise Unusable("metadata is not a JSON object")
    return value


def _tests(held: list[Any], field: str) -> list[dict[str, str]]:
    """Decodes the only element of `held` and removes it: it may be large, and this is the last reference to it."""
    tests = held[0] if not isinstance(held[0], str) else _plain_json(held[0])
    if tests is None and isinstance(held[0], str):
        tests = _encoded_tests(held, field)
    held.clear()
    if not isinstance(tests, list):
        raise Unusable(f"{field} is not a list of tests")
    return [_test(test, field, number) for number, test in enumerate(tests, start=1)]


def _plain_json(text: str) -> Any:
    """Parses the text; None if it is not JSON. The exception would keep the text alive, so it is not passed on."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _encoded_tests(held: list[str], field: str) -> list[Any]:
    pieces = pickled_text_pieces(_inflated(held, field))
    try:
        try:
            return list(json_items(pieces))
        except ForeignPickle:
            raise
        except (ValueError, RecursionError):
            deque(pieces, maxlen=0)  # check that it is a text at all
    except ForeignPickle as error:
        raise Unusable(f"{field} is refused: {error}") from None
    raise Unusable(f"{field} holds a text that is not JSON, or no list")


def _inflated(held: list[str], field: str) -> Iterator[bytes]:
    """Decodes and decompresses in steps; the text is released before the last one."""
    inflater = zlib.decompressobj()
    room = MAX_TESTS_BYTES
    for start in range(0, len(held[0]), STEP):
        piece = held[0][start : start + STEP]
        if start + STEP >= len(held[0]):
            held.clear()
        try:
            squeezed = base64.b64decode(piece, validate=True)
        except (binascii.Error, ValueError):
            raise Unusable(f"{field} is neither JSON nor base64") from None
        try:
            data = inflater.decompress(squeezed, room)
        except zlib.error as error:
            raise Unusable(f"{field} cannot be decompressed ({error})") from None
        room -= len(data)
        if room <= 0 or inflater.unconsumed_tail:
            raise Unusable(f"{field} is larger than {MAX_TESTS_BYTES >> 20} MiB")
        yield data
        if not held:
            break
    if not inflater.eof:
        raise Unusable(f"{field} is cut short")


def _test(test: Any, field: str, number: int) -> dict[str, str]:
    if not isinstance(test, dict) or not all(isinstance(test.get(key), str) for key in ("input", "output")):
        raise Unusable(f"{field} test {number} has no text for input and output")
    if test.get("testtype") not in TEST_TYPES:
        raise Unusable(f"{field} test {number} has the unknown testtype {test.get('testtype')!r}")
    return {key: test[key] for key in ("input", "output", "testtype")}


def _check(record: dict[str, Any]) -> None:
    kinds = {test["testtype"] for test in (*record["public_test_cases"], *record["private_test_cases"])}
    if not kinds:
        raise Unusable("there is no test")
    if len(kinds) > 1:
        raise Unusable("it mixes tests on standard input with tests of a function")
    if kinds == {"functional"} and not record["metadata"].get("func_name"):
        raise Unusable("its tests call a function, but metadata has no func_name")


def _day(text: str) -> str:
    if not text:
        return ""
    try:
        return datetime.fromisoformat(text).date().isoformat()
    except ValueError:
        raise Unusable(f"contest_date {text[:40]!r} is not an ISO date") from None
