"""Which sample a score is of: the problems of one pack, asked with one version of the prompt. Pure.

Two scores may stand side by side, or in one line over time, only if their samples are the same. The identity is stored with
the score of a run when it ends, so that nobody has to read long plans to compare.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from runner.contract.run_spec import BenchmarkSpec

ID_CHARS = 16


class Sample(TypedDict):
    """As it is stored, for each benchmark."""

    id: str
    pack_digest: str
    problems: int
    prompt_version: str


def sample_id(pack_digest: str, problem_ids: Iterable[str], prompt_version: str) -> str:
    """The same for the same problems in any order; how many answers were asked for each does not matter."""
    text = json.dumps([pack_digest, sorted(set(problem_ids)), prompt_version])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:ID_CHARS]


def samples_of(benchmarks: Sequence[BenchmarkSpec], prompt_versions: Mapping[str, str]) -> dict[str, Sample]:
    """Of each benchmark of a run."""
    samples: dict[str, Sample] = {}
    for part in benchmarks:
        version = prompt_versions.get(part.name, "")
        samples[part.name] = Sample(
            id=sample_id(part.pack_digest, part.problem_ids, version),
            pack_digest=part.pack_digest,
            problems=len(set(part.problem_ids)),
            prompt_version=version,
        )
    return samples


def stored_sample(score: Mapping[str, Any] | None, benchmark: str) -> Sample | None:
    """The sample that is stored with a score; None where an older version stored none."""
    found: Sample | None = ((score or {}).get("samples") or {}).get(benchmark)
    return found
