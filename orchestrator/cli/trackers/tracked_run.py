"""What experiment trackers are told of a run: parameters, metrics, tags, times and files. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

TAG = "benchyard.run_id"
"""Finds the run again, so that a second export changes it instead of adding another."""
ENDED = {"completed": "FINISHED", "cancelled": "KILLED", "failed": "FAILED"}
PARAMS = (
    "kind",
    "benchmarks",
    "sample_size",
    "samples_per_problem",
    "seed",
    "instance_type",
    "concurrency",
    "budget_usd",
    "trigger_type",
)
SCORES = ("estimate", "low", "high", "n", "passed", "excluded")


@dataclass(frozen=True)
class TrackedRun:
    run_id: str
    name: str
    status: str
    """`FINISHED`, `KILLED`, `FAILED` or `RUNNING`."""
    started_ms: int
    ended_ms: int | None
    params: dict[str, str]
    metrics: dict[str, float]
    tags: dict[str, str]
    files: tuple[Path, ...] = field(default=())


def tracked_run(run: Mapping[str, Any], files: tuple[Path, ...] = ()) -> TrackedRun:
    """From a run as the API gives it."""
    name = f"{run.get('model') or run['kind']} on {', '.join(run['benchmarks'])}"
    params = {key: _text(run[key]) for key in PARAMS if run.get(key) is not None} | {"model": _text(run.get("model"))}
    params |= {f"pack_digest.{part['name']}": _text(part["pack_digest"]) for part in run.get("plan") or []}
    metrics = _score("score", run.get("score") or {})
    if len(run["benchmarks"]) > 1:
        for benchmark, score in (run.get("scores") or {}).items():
            metrics |= _score(f"score.{benchmark}", score)
    metrics |= {f"outcome.{outcome}": float(count) for outcome, count in (run.get("outcomes") or {}).items()}
    for key in ("cost_usd", "input_tokens", "output_tokens"):
        if run.get(key) is not None:
            metrics[key] = float(run[key])
    ended = run.get("completed_at")
    return TrackedRun(
        run_id=str(run["id"]),
        name=name[:250],
        status=ENDED.get(run["status"], "RUNNING"),
        started_ms=_milliseconds(run.get("started_at") or run["created_at"]),
        ended_ms=None if ended is None else _milliseconds(ended),
        params=params,
        metrics={_key(name): value for name, value in metrics.items()},
        tags={TAG: str(run["id"]), "benchyard.status": str(run["status"]), "benchyard.model": _text(run.get("model"))},
        files=files,
    )


def _score(prefix: str, score: Mapping[str, Any]) -> dict[str, float]:
    """The estimate with the ends of its 95 % interval, and pass@k."""
    values = {f"{prefix}.{name}": float(score[name]) for name in SCORES if score.get(name) is not None}
    values |= {f"{prefix}.pass_at_{k}": float(rate) for k, rate in (score.get("pass_at_k") or {}).items()}
    return values


def _key(name: str) -> str:
    """A name that both trackers accept."""
    return re.sub(r"[^\w./ -]", "_", name)[:250]


def _text(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str("" if value is None else value)
    return text[:500]


def _milliseconds(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1000)
