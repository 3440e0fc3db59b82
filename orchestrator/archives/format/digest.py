"""The grading digest: one value for all verdicts of a run. The same answers, judged the same, give the same one. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass

from runner.contract.events import NOT_THE_MODELS_FAULT


@dataclass(frozen=True, order=True)
class Verdict:
    """What the digest is over. Answers are digests themselves; a pack is what the tests came from."""

    benchmark: str
    problem_id: str
    sample_index: int
    answer: str
    outcome: str
    parity_outcome: str
    pack_digest: str
    adapter: str


def is_verdict(outcome: str) -> bool:
    """What the provider or we failed at says nothing about an answer."""
    return outcome not in NOT_THE_MODELS_FAULT


def grading_digest(verdicts: Iterable[Verdict]) -> str:
    """In whichever order they come."""
    digest = hashlib.sha256()
    for verdict in sorted(verdicts):
        digest.update(json.dumps(astuple(verdict)).encode() + b"\n")
    return digest.hexdigest()
