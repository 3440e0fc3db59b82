"""Measures how far a benchmark's judge agrees with people: its labelled answers are graded in a run, and compared."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from orchestrator.datasets.catalogue import BenchmarkInfo, Catalogue
from orchestrator.db.session import Database
from orchestrator.errors import Invalid
from orchestrator.grading.formats import Answers
from orchestrator.grading.queue import enqueue_answers
from orchestrator.runs import item_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.queueing.drafts import Grade, GradeTask, LabelledItem, PlannedBenchmark
from orchestrator.runs.queueing.judges import judge_slug
from orchestrator.runs.queueing.plan import CPU_LIMITS_S
from orchestrator.runs.service import RunService
from orchestrator.runs.tables import ContainerRun
from orchestrator.settings import Settings
from orchestrator.stats.agreement import Agreement, agreement
from orchestrator.system.clock import Clock
from runner.contract.events import NOT_THE_MODELS_FAULT
from runner.contract.run_spec import GivenAnswer

TRIGGER = "agreement"
SHOWN_RUNS = 20
LOOKED_AT = 400
"""Of the newest runs that measured an agreement, for any benchmark."""
NO_VERDICT = frozenset(outcome.value for outcome in NOT_THE_MODELS_FAULT)


@dataclass(frozen=True)
class MeasuredAgreement:
    """The agreement that one run measured."""

    run_id: str
    status: str
    judge: str | None
    """The model that judged; None if a rule did."""
    pack_digest: str
    prompt_version: str
    created_at: datetime
    cost_usd: float
    answers: int
    agreement: Agreement


class AgreementService:
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

    async def measure(self, benchmark: str, judge: str | None = None, budget_usd: float | None = None) -> str:
        """Queue a run that grades the labelled answers, by the benchmark's judge or by another model with its rubric;
        returns the run's id."""
        info = await asyncio.to_thread(self._catalogue.get, benchmark)
        answers, items = _labelled(info)
        part = await asyncio.to_thread(self._planned, info, answers)
        if judge is not None:
            model = await self._runs.find_model(judge)
            part = _judged_by(part, model.slug)
        draft = Grade(
            task=GradeTask(benchmarks=[part], labelled=items),
            instance_type=self._runs.roomiest_type(None),
            deadline_s=self._settings.default_deadline_s,
            samples_per_problem=max(map(len, part.samples or [[0]])),
            trigger_type=TRIGGER,
            budget_usd=budget_usd,
        )
        by_name = {info.name: answers}
        now, most = self._clock.now(), self._settings.daily_budget_usd
        run_id = await self._db.write(lambda s: enqueue_answers(s, draft, by_name, now=now, daily_budget_usd=most))
        self._wake()
        return run_id

    async def measured(self, benchmark: str) -> list[MeasuredAgreement]:
        """What was measured for a benchmark, the newest first."""

        def read(session: Session) -> list[MeasuredAgreement]:
            runs = run_queries.page(session, limit=LOOKED_AT, trigger_type=TRIGGER)
            return [_measured(session, run) for run in runs if run.benchmarks == [benchmark]][:SHOWN_RUNS]

        return await self._db.read(read)

    def _planned(self, info: BenchmarkInfo, answers: Answers) -> PlannedBenchmark:
        ids, samples = answers.in_order(entry.id for entry in self._catalogue.entries(info.name))
        return PlannedBenchmark(
            name=info.name,
            adapter=info.adapter,
            pack_digest=info.pack_digest,
            problem_ids=ids,
            cpu_s=CPU_LIMITS_S.get(info.name),
            samples=samples,
            rules=info.rules,
        )


def _labelled(info: BenchmarkInfo) -> tuple[Answers, list[LabelledItem]]:
    if not info.labelled:
        raise Invalid(f"{info.name} has no labelled answers; add them to its file as `labelled` and add the file again")
    answers, items = Answers(), []
    for label in info.labelled:
        index = len(answers.by_problem.get(label.problem_id, ()))
        answers.add(label.problem_id, GivenAnswer(sample_index=index, text=label.answer))
        items.append(LabelledItem(problem_id=label.problem_id, sample_index=index, right=label.right))
    return answers, items


def _judged_by(part: PlannedBenchmark, slug: str) -> PlannedBenchmark:
    grader = part.rules.judge.grader if part.rules else None
    if part.rules is None or grader is None:
        raise Invalid(f"{part.name} is not judged by a model, so none can be chosen; leave the model out")
    judge = part.rules.judge.model_copy(update={"grader": grader.model_copy(update={"model": slug})})
    return part.model_copy(update={"rules": part.rules.model_copy(update={"judge": judge})})


def _measured(session: Session, run: ContainerRun) -> MeasuredAgreement:
    part = run.task.benchmarks[0]
    labelled = run.task.labelled if isinstance(run.task, GradeTask) else []
    outcomes = {key[1:3]: key[3] for key in item_queries.both_verdicts(session, run.id)}
    verdicts = [(label.right, _passed(outcomes.get((label.problem_id, label.sample_index)))) for label in labelled]
    return MeasuredAgreement(
        run_id=run.id,
        status=run.status,
        judge=judge_slug(part),
        pack_digest=part.pack_digest,
        prompt_version=part.rules.prompt_version if part.rules else "",
        created_at=run.created_at,
        cost_usd=run.cost_usd,
        answers=len(labelled),
        agreement=agreement(verdicts),
    )


def _passed(outcome: str | None) -> bool | None:
    return None if outcome is None or outcome in NO_VERDICT else outcome == "passed"
