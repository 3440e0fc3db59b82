"""MMLU-Pro questions: JSON lines, a JSON array, or a zip that holds one (the form in which its authors publish model
outputs).

Only the fields of the question are read, not a model's answers. A question is unusable if its answer letter and index
contradict each other. Records with a worked answer (`cot_content`: the validation split) are not problems: the first five of
a category accompany each of its questions as the examples of the published prompt.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.formats.records import Found, LeftOut, Unusable, read_array, read_lines, text, texts
from orchestrator.datasets.formats.source import MAX_WHOLE_BYTES, Source
from orchestrator.datasets.packs.pack import Entry

LETTERS = "ABCDEFGHIJ"
PLACEHOLDER = "N/A"
WORKED = "worked_answer"
EXAMPLES = 5


@dataclass(frozen=True)
class MmluPro:
    adapter: str = "mmlu_pro"
    description: str = "12,000 multiple-choice questions of 14 subjects with up to ten options each."
    licence: str = "MIT"
    origin: str = "TIGER-Lab/MMLU-Pro"

    def read(self, source: Source) -> Iterator[Found | LeftOut]:
        yield from _with_examples(self._all(source))

    def _all(self, source: Source) -> Iterator[Found | LeftOut]:
        if source.path.suffix not in (".json", ".zip"):
            yield from read_lines(source, question)
            return
        document = source.whole()
        if document[:2] == b"PK":
            document = unzipped(source.path.name, document)
        try:
            rows = json.loads(document)
        except (ValueError, RecursionError) as error:
            raise BadSource(f"{source.path.name} is not JSON ({error}); nothing was built.") from None
        del document
        if not isinstance(rows, list):
            raise BadSource(f"{source.path.name} is not a list of questions; nothing was built.")
        yield from read_array(source.path.name, rows, question)


def _with_examples(items: Iterator[Found | LeftOut]) -> Iterator[Found | LeftOut]:
    """Adds the examples of its category to each problem. Holds all problems in memory, since examples may come last."""
    held = list(items)
    examples: dict[str, list[dict[str, Any]]] = {}
    for item in held:
        if isinstance(item, Found) and WORKED in item.record:
            shown = {field: item.record[field] for field in ("question", "options", "answer", WORKED)}
            examples.setdefault(item.entry.category, []).append(shown)
    for item in held:
        if isinstance(item, LeftOut):
            yield item
        elif WORKED not in item.record:
            few = examples.get(item.entry.category, [])[:EXAMPLES]
            yield replace(item, record={**item.record, "examples": few}) if few else item


def question(raw: dict[str, Any]) -> tuple[Entry, dict[str, Any]]:
    problem_id = str(raw.get("question_id", ""))
    if not problem_id:
        raise Unusable("question_id is missing")
    options = texts(raw, "options")
    answer = text(raw, "answer")
    index = int(raw["answer_index"]) if str(raw.get("answer_index", "")).isdigit() else -1
    if len(answer) != 1 or LETTERS.find(answer) != index:
        raise Unusable(f"answer {answer[:10]!r} and answer_index {raw.get('answer_index')!r} disagree")
    while options and options[-1] == PLACEHOLDER:
        options = options[:-1]
    if index >= len(options) or len(options) > len(LETTERS):
        raise Unusable(f"there are {len(options)} options, and the answer is {answer}")
    category = text(raw, "category")
    record = {
        "question_id": problem_id,
        "question": text(raw, "question"),
        "options": options,
        "answer": answer,
        "category": category,
    }
    worked = raw.get("cot_content")
    if isinstance(worked, str) and worked.strip():
        record[WORKED] = worked.strip().removeprefix("A:").strip()
    return Entry(id=problem_id, category=category), record


def unzipped(name: str, document: bytes) -> bytes:
    """The only JSON document in a zip."""
    try:
        with zipfile.ZipFile(io.BytesIO(document)) as archive:
            inside = [info for info in archive.infolist() if info.filename.endswith(".json")]
            if len(inside) != 1 or inside[0].file_size > MAX_WHOLE_BYTES:
                raise BadSource(f"{name} does not hold exactly one JSON file of a sensible size; nothing was built.")
            return archive.read(inside[0])
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise BadSource(f"{name} is damaged (zip: {error}); fetch it again.") from None
