"""What an answer is, as a digest: the same text, program and end of a model's turn give the same one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from orchestrator.runs import item_queries


def finish_of(data: Mapping[str, Any]) -> str:
    """Why the model stopped; an answer that came from a file was whole."""
    calls = data.get("calls") or [{}]
    return str(calls[-1].get("finish_reason") or "stop")


def answer_digest(data: Mapping[str, Any]) -> str:
    """Of a stored result."""
    parts = [data.get("answer") or "", data.get("code"), finish_of(data)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """A verdict, and the answer that it is about."""

    benchmark: str
    problem_id: str
    sample_index: int
    answer: str
    outcome: str
    parity_outcome: str | None


def judged_answers(session: Session, run_id: str) -> list[JudgedAnswer]:
    """All of a run, in the order of its plan. Results from before digests were kept are read whole for theirs."""
    found = []
    for position, benchmark, problem_id, sample, digest, outcome, parity in item_queries.judged(session, run_id):
        answer = digest or _digest_of(session, run_id, position)
        found.append(JudgedAnswer(benchmark, problem_id, sample, answer, outcome, parity))
    return found


def _digest_of(session: Session, run_id: str, position: int) -> str:
    row = item_queries.at(session, run_id, position)
    assert row is not None
    session.expunge(row)
    return answer_digest(row.data)
