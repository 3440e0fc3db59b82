"""The contents of a run's archive, from rows and stored artefacts alone. The same rows give the same members.

manifest.json     format, digests of all members, grading digest
artefacts/        files that the runner left, under safe names
containers.json   each attempt: container, times, exit code, reason
items.jsonl       one complete result per line
log.jsonl         the runner's log, stages, state changes
output.txt        the end of each container's output; for a command, the output of its repeats
run.json          the run, its model and its plan
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from sqlmodel import Session

from orchestrator.archives.format.artefacts import artefact_members
from orchestrator.archives.format.digest import ArchivedVerdict, grading_digest, is_verdict, score_text
from orchestrator.archives.format.layout import FORMAT, ITEMS, MANIFEST, OUTPUT
from orchestrator.archives.format.tar_stream import Member, gzipped, measured, tar_of, whole
from orchestrator.db.session import Database
from orchestrator.errors import NotFound
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs import item_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.intake.bounds import JudgedAnswer, answer_digest, judged_answers
from orchestrator.runs.lifecycle import Status
from orchestrator.runs.live import queries as event_queries
from orchestrator.runs.queueing.drafts import plan_rows
from orchestrator.runs.reports.exports.lines import item
from orchestrator.runs.reports.model_cost import ModelCost
from orchestrator.runs.reports.model_names import model_name
from orchestrator.runs.tables import Artefact, Attempt, ContainerRun, Event, ItemRow
from runner.contract.run_spec import RunKind

PIECE = 1 << 20
LOG_EVENTS = ("log", "stage", "transition")
LOG_BYTES = 64 << 20
SAID_AT_ONCE = 20
LATER_FACTS = (
    "reasoning_price",
    "batch_input_price",
    "batch_output_price",
    "long_prompt_prices",
    "price_source",
    "context_tokens",
)
"""Columns of models that came after the first archives."""
SECRET = {"token_hash", "log_tail"}
SLIM = ("position", "benchmark", "problem_id", "sample_index", "outcome", "parity_outcome", "score")


def kind_of(status: str) -> str:
    return "result" if status == Status.COMPLETED else "error"


@dataclass(frozen=True)
class Contents:
    run_id: str
    kind: str
    grading_digest: str
    members: tuple[Member, ...]

    @property
    def filename(self) -> str:
        return f"{self.kind}.tar.gz"

    def tar_gz(self) -> AsyncIterator[bytes]:
        return gzipped(tar_of(self.members))


@dataclass(frozen=True)
class _Rows:
    run: ContainerRun
    model: LlmModel | None
    """None if the run uses no model."""
    attempts: Sequence[Attempt]
    artefacts: Sequence[Artefact]
    verdicts: list[ArchivedVerdict]
    items: int


async def contents_of(db: Database, artefacts: Path, run_id: str, *, max_bytes: int) -> Contents:
    """Reads everything once to learn sizes and digests. `max_bytes` limits results and artefacts; texts that do not fit are
    left out, verdicts never are, and the manifest says so.
    """
    rows = await db.read(lambda session: _read(session, run_id))
    lines = _Items(db, run_id, max_bytes)
    command = rows.run.kind == RunKind.COMMAND
    items = await measured(ITEMS, lines.pieces)
    log = await measured("log.jsonl", lambda: _log(db, run_id))
    artefact_files, notes = await artefact_members(
        artefacts / run_id, rows.artefacts, max_bytes=max(0, max_bytes - items.size_bytes)
    )
    members = [
        *artefact_files,
        whole("containers.json", _json([_attempt(row) for row in rows.attempts])),
        items,
        log,
        await measured(OUTPUT, lambda: _repeat_output(db, run_id)) if command else whole(OUTPUT, _output(rows.attempts)),
        whole("run.json", _json(_about(rows.run, rows.model))),
    ]
    digest = grading_digest(rows.verdicts)
    kind = kind_of(rows.run.status)
    manifest = {
        "format": FORMAT,
        "kind": kind,
        "run_id": run_id,
        "status": rows.run.status,
        "reason": rows.run.reason,
        "model": model_name(rows.run.kind, rows.model.slug if rows.model else None),
        "instance_type": rows.run.instance_type,
        "batch_id": rows.run.batch_id,
        "benchmarks": [
            {"name": part.name, "adapter": part.adapter, "pack_digest": part.pack_digest}
            for part in rows.run.task.benchmarks
        ],
        "items": rows.items,
        "items_without_texts": lines.slim,
        "verdicts": len(rows.verdicts),
        "grading_digest": digest,
        "score": rows.run.score,
        "artefacts": notes,
        "files": [{"name": member.name, "size_bytes": member.size_bytes, "sha256": member.sha256} for member in members],
    }
    return Contents(run_id, kind, digest, (whole(MANIFEST, _json(manifest)), *members))


def verdicts_of(run: ContainerRun, answers: Sequence[JudgedAnswer]) -> list[ArchivedVerdict]:
    packs = {part.name: (part.pack_digest, part.adapter) for part in run.task.benchmarks}
    return [
        ArchivedVerdict(
            answer.benchmark,
            answer.problem_id,
            answer.sample_index,
            answer.answer,
            answer.outcome,
            answer.parity_outcome or "",
            *packs.get(answer.benchmark, ("", "")),
            score_text(answer.score),
        )
        for answer in answers
        if is_verdict(answer.outcome)
    ]


def _read(session: Session, run_id: str) -> _Rows:
    run = run_queries.get(session, run_id)
    if run is None:
        raise NotFound(f"there is no run {run_id!r}; GET /api/container-runs lists the existing ones")
    model = model_queries.get(session, run.model_id)
    answers = judged_answers(session, run_id)
    attempts, artefacts = run_queries.attempts(session, run_id), run_queries.artefacts(session, run_id)
    return _Rows(run, model, attempts, artefacts, verdicts_of(run, answers), len(answers))


class _Items:
    """The results as lines. Once they would exceed `max_bytes`, lines have the verdict but no texts."""

    def __init__(self, db: Database, run_id: str, max_bytes: int) -> None:
        self._db, self._run_id, self._max_bytes = db, run_id, max_bytes
        self.slim = 0

    async def pieces(self) -> AsyncIterator[bytes]:
        after, written, self.slim = -1, 0, 0
        while True:
            lines: list[bytes] = []
            size = 0

            def take(row: ItemRow) -> bool:
                nonlocal after, written, size
                line = _line(item(row), row)
                if written + len(line) > self._max_bytes:
                    line = _line({"without_texts": True, **{name: getattr(row, name) for name in SLIM}}, row)
                    self.slim += 1
                lines.append(line)  # noqa: B023 -- used up before the next turn
                after, written, size = row.position, written + len(line), size + len(line)
                return size < PIECE

            await self._db.read(lambda s: item_queries.each_whole(s, self._run_id, after=after, take=take))
            if not lines:
                return
            yield b"".join(lines)


def _line(values: dict[str, Any], row: ItemRow) -> bytes:
    return json.dumps({**values, "answer_digest": row.answer_digest or answer_digest(row.data)}).encode() + b"\n"


async def _log(db: Database, run_id: str) -> AsyncIterator[bytes]:
    after = size = 0
    while size < LOG_BYTES:
        rows = await db.read(lambda s, after=after: event_queries.of_run(s, run_id, LOG_EVENTS, after_number=after))  # type: ignore[misc]
        if not rows:
            return
        piece = b"".join(_event(row) for row in rows)
        yield piece
        after, size = rows[-1].id or 0, size + len(piece)
    yield b'{"type": "cut", "data": {"message": "the log is longer than an archive keeps"}}\n'


def _event(row: Event) -> bytes:
    return _json({"at": row.at, "attempt": row.attempt, "type": row.type, "data": row.data})


def _output(attempts: Sequence[Attempt]) -> bytes:
    parts = [
        f"=== attempt {row.number}: {row.container_name}, exit {row.exit_code}\n{row.log_tail or ''}".rstrip("\n") + "\n"
        for row in attempts
    ]
    return "".join(parts).encode("utf-8", "replace")


async def _repeat_output(db: Database, run_id: str) -> AsyncIterator[bytes]:
    """The output of a command's repeats, as far as it was kept."""
    after = -1
    while rows := await db.read(lambda s, after=after: item_queries.whole_page(s, run_id, limit=SAID_AT_ONCE, after=after)):  # type: ignore[misc]
        for row in rows:
            text = (row.data.get("repeat") or {}).get("output", "").rstrip("\n")
            head = f"=== repeat {row.sample_index + 1}: {row.outcome}, {row.data.get('exit')}, {row.wall_s:.3f} s"
            yield f"{head}\n{text}\n".encode("utf-8", "replace")
        after = rows[-1].position


def _about(run: ContainerRun, model: LlmModel | None) -> dict[str, Any]:
    unused = set() if run.judge_cost_usd else {"judge_cost_usd"}  # as in archives of earlier versions
    unused |= set() if run.batch else {"batch", "waiting_since", "waited_s"}
    facts = _facts(run, {"task"} | unused) | {"cost_usd": ModelCost(run.cost_usd, run.unpriced_calls).usd}
    facts["fruitless"] = facts.pop("attempts_without_progress")  # the column's former name, as in earlier archives
    return {"run": facts, "model": None if model is None else _model_facts(model), "plan": plan_rows(run.task)}


def _attempt(row: Attempt) -> dict[str, Any]:
    return _facts(row, SECRET | {"agent_id"}) | {"engine": row.engine_label}


def _model_facts(model: LlmModel) -> dict[str, Any]:
    """Without facts that are not known of it, which archives of earlier versions do not have."""
    return _facts(model, {name for name in LATER_FACTS if getattr(model, name) is None})


def _facts(row: ContainerRun | Attempt | LlmModel, without: Collection[str] = ()) -> dict[str, Any]:
    return {name: getattr(row, name) for name in type(row).model_fields if name not in without}


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, default=_plain).encode() + b"\n"


def _plain(value: object) -> str:
    assert isinstance(value, datetime | date), type(value)
    return value.isoformat()
