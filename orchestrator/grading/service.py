"""Grades stored answers: a run of kind `grade`, which goes through queue, container and judges like any other.

It commits before it answers and launches nothing. The model of answers from a file is the catalogue's `stored-answers`,
which is archived from the start: it can be asked nothing, and lists of models do not show it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlmodel import Session

from orchestrator.datasets.catalogue import BenchmarkInfo, Catalogue
from orchestrator.db.session import Database
from orchestrator.errors import Conflict, Invalid, NotFound
from orchestrator.grading import queries as given_queries
from orchestrator.grading.formats import Answers, answer_of_item, answers_of_file
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs import item_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.lifecycle import TERMINAL
from orchestrator.runs.plan import CPU_LIMITS_S, Plan
from orchestrator.runs.service import NewRun, RunService, add_run, check_size, pending_run
from orchestrator.runs.tables import ContainerRun
from orchestrator.runs.unasked_model import UNASKED_MODEL, unasked_model
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock
from runner.contract.run_spec import BenchmarkSpec, RunKind


@dataclass(frozen=True)
class Accepted:
    """What became of the answers that were handed in."""

    run_id: str
    benchmark: str
    pack_digest: str
    answers: int
    problems: int
    unattempted: list[str]
    left_out: list[str]


@dataclass(frozen=True)
class Regraded:
    run_id: str
    answers: int
    left_out: list[str]
    """Items without a stored answer, with the reason."""


@dataclass(frozen=True)
class Move:
    """An item whose verdict is not what it was."""

    benchmark: str
    problem_id: str
    sample_index: int
    before: str
    after: str
    parity_before: str | None
    parity_after: str | None


class GradeService:
    def __init__(
        self,
        db: Database,
        catalogue: Catalogue,
        settings: Settings,
        clock: Clock,
        runs: RunService,
        *,
        wake: Callable[[], None],
    ) -> None:
        self._db, self._catalogue, self._settings, self._clock = db, catalogue, settings, clock
        self._runs, self._wake = runs, wake

    async def grade_file(self, benchmark: str, path: Path, instance_type: str | None = None) -> Accepted:
        """Queue a run that judges all answers of a file. The file is not needed afterwards."""
        type_name = self._runs.roomiest_type(instance_type)
        info, ids, answers = await asyncio.to_thread(self._read, benchmark, path)
        if not answers.count:
            first = f" The first trouble: {answers.left_out[0]}" if answers.left_out else ""
            raise Invalid(f"{path.name} has no answer that could be graded for {benchmark}.{first}")
        chosen, samples = answers.in_order(ids)
        spec = _spec(info, chosen, samples)
        most = max(map(len, samples))
        request = NewRun(model=UNASKED_MODEL, samples_per_problem=most, trigger_type="grade")
        now = self._clock.now()

        def insert(session: Session) -> str:
            model = unasked_model(session, now)
            run = self._row(request, (spec,), model, type_name, now)
            add_run(session, run, model.slug, daily_budget_usd=None)
            given_queries.add(session, run.id, info.name, answers.rows())
            return run.id

        run_id = await self._db.write(insert)
        self._wake()
        attempted = set(chosen)
        return Accepted(
            run_id,
            info.name,
            info.pack_digest,
            answers.count,
            len(chosen),
            [problem_id for problem_id in ids if problem_id not in attempted],
            answers.left_out,
        )

    async def regrade(self, run_id: str, instance_type: str | None = None) -> Regraded:
        """Queue a run that judges the answers of an ended one again, with the judges of today. No model is asked."""
        type_name = self._runs.roomiest_type(instance_type)
        old = await self._db.read(lambda s: run_queries.get(s, run_id))
        if old is None:
            raise NotFound(f"there is no run {run_id!r}; GET /api/container-runs lists those there are")
        if old.status not in TERMINAL:
            raise Conflict(f"run {run_id} is {old.status}; wait until it has ended")
        if old.kind == RunKind.COMMAND:
            raise Conflict(f"run {run_id} measures a command: there is no answer to judge again")
        gathered = await self._gather(old)
        left_out = [reason for answers in gathered.values() for reason in answers.left_out]
        count = sum(answers.count for answers in gathered.values())
        if not count:
            raise Conflict(f"run {run_id} has no stored answer that could be graded again")
        specs = await asyncio.to_thread(self._specs_again, old, gathered)
        now = self._clock.now()
        request = NewRun(
            model=old.model_id, samples_per_problem=old.samples_per_problem, seed=old.seed, trigger_type="regrade"
        )

        def insert(session: Session) -> str:
            model = model_queries.get(session, old.model_id)
            assert model is not None
            run = self._row(request, specs, model, type_name, now)
            run.retry_of = old.id
            add_run(session, run, model.slug, daily_budget_usd=None)
            for name, answers in gathered.items():
                given_queries.add(session, run.id, name, answers.rows())
            return run.id

        new_id = await self._db.write(insert)
        self._wake()
        return Regraded(new_id, count, left_out)

    async def moves(self, run_id: str) -> list[Move]:
        """Which verdicts of a regraded run differ from those of the run that it judged again."""
        run = await self._runs.get(run_id)
        while run.trigger_type == "retry" and run.retry_of is not None:
            run = await self._runs.get(run.retry_of)
        if run.kind != RunKind.GRADE or run.retry_of is None:
            raise Conflict(f"run {run_id} does not judge another run's answers again; POST .../regrade makes one that does")
        before_id = run.retry_of

        def read(session: Session) -> list[Move]:
            before = {key[:3]: key[3:] for key in item_queries.both_verdicts(session, before_id)}
            return [
                Move(*after[:3], before[after[:3]][0], after[3], before[after[:3]][1], after[4])
                for after in item_queries.both_verdicts(session, run_id)
                if after[:3] in before and before[after[:3]] != after[3:]
            ]

        return await self._db.read(read)

    def _read(self, benchmark: str, path: Path) -> tuple[BenchmarkInfo, list[str], Answers]:
        info = self._catalogue.get(benchmark)
        ids = [entry.id for entry in self._catalogue.entries(benchmark)]
        return info, ids, answers_of_file(path, ids)

    async def _gather(self, old: ContainerRun) -> dict[str, Answers]:
        gathered: dict[str, Answers] = {}
        after = -1
        while rows := await self._db.read(lambda s, after=after: item_queries.whole_page(s, old.id, limit=200, after=after)):  # type: ignore[misc]
            for row in rows:
                answers = gathered.setdefault(row.benchmark, Answers())
                answer = answer_of_item(row.data)
                if answer is None:
                    answers.left_out.append(
                        f"{row.problem_id} sample {row.sample_index}: {row.outcome}, no answer is stored"
                    )
                else:
                    answers.add(row.problem_id, answer)
            after = rows[-1].position
        return gathered

    def _specs_again(self, old: ContainerRun, gathered: dict[str, Answers]) -> tuple[BenchmarkSpec, ...]:
        specs = []
        for part in Plan.of(old).benchmarks:
            if part.name not in gathered:
                continue
            info = self._catalogue.get(part.name)
            if info.pack_digest != part.pack_digest:
                raise Conflict(
                    f"the dataset {part.name} is not the one that run {old.id} used ({part.pack_digest}); add that one again"
                )
            chosen, samples = gathered[part.name].in_order(part.problem_ids)
            if chosen:
                specs.append(_spec(info, chosen, samples))
        return tuple(specs)

    def _row(
        self, request: NewRun, specs: tuple[BenchmarkSpec, ...], model: LlmModel, type_name: str, now: datetime
    ) -> ContainerRun:
        plan = Plan(specs, request.samples_per_problem)
        check_size(plan)
        deadline_s = self._settings.default_deadline_s
        run = pending_run(request, plan, model_id=model.id or 0, instance_type=type_name, deadline_s=deadline_s, now=now)
        run.kind = RunKind.GRADE.value
        return run


def _spec(info: BenchmarkInfo, chosen: list[str], samples: list[list[int]]) -> BenchmarkSpec:
    return BenchmarkSpec(
        name=info.name,
        adapter=info.adapter,
        pack_digest=info.pack_digest,
        problem_ids=chosen,
        cpu_s=CPU_LIMITS_S.get(info.name),
        samples=samples,
    )
