"""Carries out an eval job from its traces to its last event: assembles what `generation` and `execution` need."""

from collections.abc import AsyncIterator

import httpx

from runner.contract.evals import STAGE_PERCENT, EvalTask, JobStage, TraceLine
from runner.contract.events import FailureReason
from runner.contract.run_spec import RunSpec
from runner.download import DownloadRefused, download_lines
from runner.errors import RunFailed
from runner.evals.execution import Execution, subject_of
from runner.evals.generation import Generation
from runner.evals.prompt import Training
from runner.llm.calls import Calls
from runner.log import Log
from runner.reporting.reporter import Reporter
from runner.sandbox.executor import Executor


async def fetch(client: httpx.AsyncClient, url: str, count: int, log: Log) -> AsyncIterator[TraceLine]:
    """Yields `count` traces, each once. Raises `RunFailed` if the orchestrator refuses them or has fewer."""
    keys: set[int] = set()
    try:
        async for text in download_lines(client, url, lambda: count - len(keys), log, "traces"):
            line = TraceLine.model_validate_json(text)
            if line.key not in keys:
                keys.add(line.key)
                yield line
    except DownloadRefused as refused:
        raise RunFailed(FailureReason.DATASET_ERROR, str(refused)) from None
    if len(keys) < count:
        raise RunFailed(FailureReason.DATASET_ERROR, f"{count - len(keys)} of {count} traces were not delivered")


async def execute(
    spec: RunSpec, task: EvalTask, base: str, client: httpx.AsyncClient, executor: Executor, reporter: Reporter, log: Log
) -> int:
    """Has an eval judge the traces; returns how many."""
    execution = Execution(task, executor=executor, slots=spec.sandbox_slots, reporter=reporter, log=log)
    reporter.job(JobStage.EXECUTING, 0, done=0, total=task.traces)
    return await execution.run(fetch(client, f"{base}/traces", task.traces, log))


async def generate(
    spec: RunSpec,
    task: EvalTask,
    base: str,
    client: httpx.AsyncClient,
    calls: Calls,
    executor: Executor,
    reporter: Reporter,
    log: Log,
) -> int:
    """Has a model write an eval; returns 1, for the one item of such a job."""
    if task.written:
        return 1
    reporter.job(JobStage.FETCHING_TRACES, STAGE_PERCENT[JobStage.FETCHING_TRACES])
    training, others = [], []
    async for line in fetch(client, f"{base}/traces", task.traces, log):
        if line.label is None:
            others.append(subject_of(line))
        else:
            training.append(Training(subject_of(line), line.label, line.disputed))
    reporter.waiting_for = lambda: calls.waiting_for
    generation = Generation(
        task,
        training,
        others,
        calls=calls,
        executor=executor,
        slots=spec.sandbox_slots,
        reporter=reporter,
        log=log,
    )
    await generation.run()
    return 1
