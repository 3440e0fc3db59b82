"""The grading digest: one value for all verdicts of a run. The same answers with the same verdicts give the same digest.
Pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass

from runner.contract.events import NOT_THE_MODELS_FAULT


@dataclass(frozen=True, order=True)
class ArchivedVerdict:
    """The input of the digest. Answers are given as digests; `pack_digest` names the source of the tests."""

    benchmark: str
    problem_id: str
    sample_index: int
    answer: str
    outcome: str
    parity_outcome: str
    pack_digest: str
    adapter: str
    score: str = ""
    """The value between 0 and 1 as text; empty if the answer is pass or fail."""


def is_verdict(outcome: str) -> bool:
    """Whether the outcome says something about the answer: errors of the provider or of this service do not."""
    return outcome not in NOT_THE_MODELS_FAULT


def score_text(score: float | None) -> str:
    return "" if score is None else repr(float(score))


def grading_digest(verdicts: Iterable[ArchivedVerdict]) -> str:
    """Independent of the order of the verdicts. Verdicts without a score are as before there were scores."""
    digest = hashlib.sha256()
    for verdict in sorted(verdicts):
        fields = astuple(verdict)
        digest.update(json.dumps(fields if verdict.score else fields[:-1]).encode() + b"\n")
    return digest.hexdigest()
