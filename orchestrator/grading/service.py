"""Grades stored answers in a run of kind `grade`, which uses queue, container and judges like any other.

It commits before it returns and launches nothing. Answers from a file have no model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlmodel import Session

from orchestrator.datasets.catalogue import BenchmarkInfo, Catalogue
from orchestrator.db.session import Database
from orchestrator.errors import Conflict, Invalid, NotFound
from orchestrator.grading.formats import Answers, ProblemIds, answer_of_item, answers_of_file
from orchestrator.grading.harness_logs import recognised
from orchestrator.grading.matching import ProblemMatcher, answers_of_log
from orchestrator.grading.queue import enqueue_answers
from orchestrator.runs import item_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.lifecycle import TERMINAL
from orchestrator.runs.queueing.drafts import IMPORT, Grade, GradeTask, PlannedBenchmark, check_size
from orchestrator.runs.queueing.judges import judge_slug
from orchestrator.runs.queueing.plan import CPU_LIMITS_S
from orchestrator.runs.service import RunService
from orchestrator.runs.tables import ContainerRun
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock
from runner.contract.run_spec import RunKind


@dataclass(frozen=True)
class AcceptedAnswers:
    """Which of the submitted answers were accepted."""

    run_id: str
    benchmark: str
    pack_digest: str
    answers: int
    problems: int
    unattempted: list[str]
    left_out: list[str]


@dataclass(frozen=True)
class RegradeResult:
    run_id: str
    answers: int
    left_out: list[str]
    """Items without a stored answer, with the reason."""


@dataclass(frozen=True)
class Move:
    """An item whose verdict has changed."""

    benchmark: str
    problem_id: str
    sample_index: int
    before: str
    after: str
    parity_before: str | None
    parity_after: str | None
    score_before: float | None = None
    score_after: float | None = None


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

    async def grade_file(
        self,
        benchmark: str,
        path: Path,
        instance_type: str | None = None,
        budget_usd: float | None = None,
        model: str | None = None,
    ) -> AcceptedAnswers:
        """Queue a run that judges all answers of a file. The file is not needed afterwards. The budget is for the model
        that judges, if one does.

        With the slug or id of a model, the answers are that model's, and the run counts for the leaderboard.
        """
        type_name = self._runs.roomiest_type(instance_type)
        info, ids, answers = await asyncio.to_thread(self._read, benchmark, path)
        if not answers.count:
            first = f" The first trouble: {answers.left_out[0]}" if answers.left_out else ""
            raise Invalid(f"{path.name} has no answer that could be graded for {benchmark}.{first}")
        answered_ids, samples = answers.in_order(ids)
        model_id = None if model is None else (await self._runs.find_model(model)).id
        draft = self._draft(
            [_planned(info, answered_ids, samples)],
            type_name,
            max(map(len, samples)),
            trigger_type="grade" if model_id is None else IMPORT,
            budget_usd=budget_usd,
            model_id=model_id,
        )
        run_id = await self._enqueue(draft, {info.name: answers})
        attempted = set(answered_ids)
        return AcceptedAnswers(
            run_id,
            info.name,
            info.pack_digest,
            answers.count,
            len(answered_ids),
            [problem_id for problem_id in ids if problem_id not in attempted],
            answers.left_out,
        )

    async def regrade(self, run_id: str, instance_type: str | None = None) -> RegradeResult:
        """Queue a run that judges the answers of an ended run again, with the current judges. No model is called, except
        one that judges; it is not asked again about an answer that it has judged."""
        type_name = self._runs.roomiest_type(instance_type)
        old = await self._db.read(lambda s: run_queries.get(s, run_id))
        if old is None:
            raise NotFound(f"there is no run {run_id!r}; GET /api/container-runs lists the existing ones")
        if old.status not in TERMINAL:
            raise Conflict(f"run {run_id} is {old.status}; wait until it has ended")
        if old.kind == RunKind.COMMAND:
            raise Conflict(f"run {run_id} measures a command: there is no answer to judge again")
        if old.kind == RunKind.HARNESS:
            raise Conflict(f"run {run_id} was judged by its harness; start it again to have it judge anew")
        gathered = await self._gather(old)
        left_out = [reason for answers in gathered.values() for reason in answers.left_out]
        count = sum(answers.count for answers in gathered.values())
        if not count:
            raise Conflict(f"run {run_id} has no stored answer that could be graded again")
        parts = await asyncio.to_thread(self._parts_again, old, gathered)
        draft = self._draft(
            parts,
            type_name,
            old.samples_per_problem,
            trigger_type="regrade",
            model_id=old.model_id,
            seed=old.seed,
            retry_of=old.id,
            budget_usd=old.budget_usd,
            reuse_answers=any(judge_slug(part) for part in parts),
        )

        new_id = await self._enqueue(draft, gathered)
        return RegradeResult(new_id, count, left_out)

    async def _enqueue(self, draft: Grade, answers: Mapping[str, Answers]) -> str:
        now, most = self._clock.now(), self._settings.daily_budget_usd
        run_id = await self._db.write(lambda s: enqueue_answers(s, draft, answers, now=now, daily_budget_usd=most))
        self._wake()
        return run_id

    async def moves(self, run_id: str) -> list[Move]:
        """The verdicts of a regraded run that differ from those of the original run."""
        run = await self._runs.get(run_id)
        while run.trigger_type == "retry" and run.retry_of is not None:
            run = await self._runs.get(run.retry_of)
        if run.kind != RunKind.GRADE or run.retry_of is None:
            raise Conflict(f"run {run_id} is not a regrade of another run; POST .../regrade starts one")
        before_id = run.retry_of

        def read(session: Session) -> list[Move]:
            before = {verdict[:3]: verdict[3:] for verdict in item_queries.both_verdicts(session, before_id)}
            moves = []
            for verdict in item_queries.both_verdicts(session, run_id):
                earlier, (outcome, parity, score) = before.get(verdict[:3]), verdict[3:]
                if earlier is not None and earlier != verdict[3:]:
                    scores = earlier[2], score
                    moves.append(Move(*verdict[:3], earlier[0], outcome, earlier[1], parity, *scores))
            return moves

        return await self._db.read(read)

    def _read(self, benchmark: str, path: Path) -> tuple[BenchmarkInfo, list[str], Answers]:
        info = self._catalogue.get(benchmark)
        ids = [entry.id for entry in self._catalogue.entries(benchmark)]
        log = recognised(path)
        if log is None:
            return info, ids, answers_of_file(path, ids)
        matcher = ProblemMatcher(ProblemIds(ids), lambda: zip(ids, self._catalogue.records(benchmark, ids), strict=True))
        return info, ids, answers_of_log(log, info.name, matcher)

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

    def _parts_again(self, old: ContainerRun, gathered: dict[str, Answers]) -> list[PlannedBenchmark]:
        parts = []
        for part in old.task.benchmarks:
            if part.name not in gathered:
                continue
            info = self._catalogue.get(part.name)
            if info.pack_digest != part.pack_digest:
                raise Conflict(
                    f"the dataset {part.name} is not the one that run {old.id} used ({part.pack_digest}); add that one again"
                )
            answered_ids, samples = gathered[part.name].in_order(part.problem_ids)
            if answered_ids:
                parts.append(_planned(info, answered_ids, samples))
        return parts

    def _draft(self, parts: list[PlannedBenchmark], instance_type: str, samples: int, **more: Any) -> Grade:
        draft = Grade(
            task=GradeTask(benchmarks=parts),
            instance_type=instance_type,
            deadline_s=self._settings.default_deadline_s,
            samples_per_problem=samples,
            **more,
        )
        check_size(draft.items)
        return draft


def _planned(info: BenchmarkInfo, problem_ids: list[str], samples: list[list[int]]) -> PlannedBenchmark:
    return PlannedBenchmark(
        name=info.name,
        adapter=info.adapter,
        pack_digest=info.pack_digest,
        problem_ids=problem_ids,
        cpu_s=CPU_LIMITS_S.get(info.name),
        samples=samples,
        rules=info.rules,
    )
