"""Build the checked-in files from the definitions: the problems in LiveCodeBench's record format, and the recorded answers.

Everything is a function of the sources: test generators are seeded by the question id, pickles have a fixed protocol.
"""

import base64
import importlib
import json
import pickle
import zlib
from collections.abc import Iterator
from pathlib import Path
from random import Random

from .definition import Case, Problem
from .execution import answer, encode

HERE = Path(__file__).parent
PICKLE_PROTOCOL = 4


def load_problems() -> dict[str, Problem]:
    """All problems by question id, in order."""
    names = sorted(path.stem for path in HERE.glob("by_*.py"))
    return {name: importlib.import_module(f"{__package__}.{name}").PROBLEM for name in names}


def private_cases(question_id: str, problem: Problem) -> list[Case]:
    """Edges, then small random cases that are not there yet, then the large ones."""
    rng = Random(question_id)
    cases: list[Case] = list(problem.edges)
    known = {encode(case) for case in (*problem.public, *cases)}
    wanted = len(cases) + problem.small_count
    while len(cases) < wanted:
        case = problem.small(rng)
        if encode(case) not in known:
            known.add(encode(case))
            cases.append(case)
    return [*cases, *problem.large(rng)]


def build_record(question_id: str, problem: Problem) -> dict[str, str]:
    """The 11 fields of one record, all strings."""
    public = [_test(problem, case) for case in problem.public]
    private = [_test(problem, case) for case in private_cases(question_id, problem)]
    samples = _samples(problem, public)
    return {
        "question_title": problem.title,
        "question_content": f"{problem.statement.strip()}\n\n{samples}",
        "platform": "benchyard",
        "question_id": question_id,
        "contest_id": f"benchyard-{problem.date[:7]}",
        "contest_date": f"{problem.date}T00:00:00",
        "starter_code": problem.starter_code,
        "difficulty": problem.difficulty,
        "public_test_cases": json.dumps(public),
        "private_test_cases": encode_private(json.dumps(private)),
        "metadata": json.dumps({"func_name": problem.func_name} if problem.func_name else {}),
    }


def build_problems() -> str:
    """The text of problems.jsonl."""
    records = (build_record(question_id, problem) for question_id, problem in load_problems().items())
    return "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)


def encode_private(tests: str) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(tests, protocol=PICKLE_PROTOCOL), 9)).decode()


def build_answers(model: str) -> str:
    """The text of one demo model's file of recorded answers."""
    lines = []
    for question_id, problem in load_problems().items():
        for record in _answers(question_id, problem):
            if record.pop("model") == model:
                lines.append(f"{json.dumps(record, ensure_ascii=False)}\n")
    return "".join(lines)


def _answers(question_id: str, problem: Problem) -> Iterator[dict[str, object]]:
    """Read `answers/<question id>.md`: sections `=== MODEL SAMPLE INTENDED`, each optionally with thinking above `--- text`.

    A line `@@reference` or `@@brute` stands for that source of the problem.
    """
    stop_reasons = {"truncated": "max_tokens", "refused": "refusal"}
    content = (HERE / "answers" / f"{question_id}.md").read_text(encoding="utf-8")
    for section in content.split("\n=== ")[1:]:
        head, _, body = section.partition("\n")
        model, sample, intended = head.split()
        for name, source in (("reference", problem.reference), ("brute", problem.brute)):
            body = body.replace(f"\n@@{name}\n", f"\n{source.strip()}\n")
        thinking, marked, reply = body.partition("\n--- text\n")
        if not marked:
            thinking, reply = "", body
        record: dict[str, object] = {
            "model": model,
            "question_id": question_id,
            "sample": int(sample),
            "text": reply.strip(),
            "stop_reason": stop_reasons.get(intended, "end_turn"),
            "input_tokens": 160 + _tokens(problem.statement) + _tokens(problem.starter_code),
            "output_tokens": _tokens(body),
            "intended": intended,
        }
        if thinking.strip():
            record["thinking"] = thinking.strip()
        yield record


def _tokens(words: str) -> int:
    """A fair guess, so that prices and rates in a demo look real."""
    return (len(words.encode()) + 2) // 3


def _test(problem: Problem, case: Case) -> dict[str, str]:
    output = answer(problem, problem.reference, case)
    return {"input": encode(case), "output": output, "testtype": "functional" if problem.func_name else "stdin"}


def _samples(problem: Problem, public: list[dict[str, str]]) -> str:
    parts = []
    for number, test in enumerate(public, 1):
        if problem.func_name:
            values = zip(problem.arg_names, test["input"].split("\n"), strict=True)
            given = ", ".join(f"{name} = {value}" for name, value in values)
            parts.append(f"**Example {number}**\n\n```\nInput: {given}\nOutput: {test['output']}\n```\n")
        else:
            parts.append(f"**Sample input {number}**\n\n```\n{test['input'].rstrip()}\n```\n")
            parts.append(f"**Sample output {number}**\n\n```\n{test['output'].rstrip()}\n```\n")
    return "\n".join(parts)
