"""MMLU-Pro questions: the published Parquet files, or a zip of model outputs as its authors publish them.

Only the fields of the question are read, not a model's answers. A question is unusable if its answer letter and index
contradict each other. Records with a worked answer (`cot_content`: the validation split) are not problems: the first five of
a category accompany each of its questions as the examples of the published prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.datasets.formats.records import Found, LeftOut, Unusable, read_records, text, texts
from orchestrator.datasets.formats.source import Source
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
        return self.read_together([source])

    def read_together(self, sources: Sequence[Source]) -> Iterator[Found | LeftOut]:
        """The validation split may be in a file of its own."""
        return _with_examples(item for source in sources for item in read_records(source, question))


def _with_examples(items: Iterable[Found | LeftOut]) -> Iterator[Found | LeftOut]:
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
