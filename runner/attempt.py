"""Carries out one attempt, from claim to exit code: opens everything in order, drops privileges, works and shuts down.

The sandbox must be opened while the runner still has privileges, and before any secret is in memory. Its processes are
exec'ed, not forked. The provider's SDK loads in a thread while the sandbox starts and the problems arrive.
"""

import asyncio
import contextlib
import os
import signal
import stat
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from runner.commands.measuring_process import MeasuringProcess
from runner.commands.work import CommandWork
from runner.contract.evals import EvalTask
from runner.contract.events import FailureReason, Stage
from runner.contract.run_spec import ModelSpec, RunKind, RunSpec
from runner.errors import (
    EXIT_ABANDONED,
    EXIT_CRASHED,
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_SUPERSEDED,
    EXIT_TERMINATED,
    RunDeferred,
    RunFailed,
)
from runner.evals.work import execute, generate
from runner.harness.processes import HarnessProcesses
from runner.harness.work import HarnessWork
from runner.items.problems import Problems
from runner.items.work import Item, Work, items_of
from runner.llm.calls import Calls
from runner.llm.client import LlmClient, NoClient, open_client
from runner.log import Log
from runner.process.boot import SOCKET_OPTIONS, hide_memory
from runner.process.kernel_usage import limits
from runner.reporting.reporter import Reporter, Stop
from runner.reporting.usage_samples import UsageLog
from runner.sandbox.executor import Executor
from runner.sandbox.pool.worker_pool import SandboxUnavailableError
from runner.sandbox.processes.jail import drop_privileges

RUNNER_UID = 65532
UNASKING = frozenset({RunKind.GRADE, RunKind.EVAL_EXECUTE})
FLUSH_S = 3.0
LOG_UPLOAD_S = 5.0
EXITS = {
    Stop.SUPERSEDED: EXIT_SUPERSEDED,
    Stop.CANCELLED: EXIT_DONE,
    Stop.LOST: EXIT_CRASHED,
    Stop.ABANDONED: EXIT_ABANDONED,
}


def orchestrator_client(run_token: str) -> httpx.AsyncClient:
    """Client for events, problems, traces and files: short calls, each repeated if there is no answer."""
    return httpx.AsyncClient(
        headers={"Authorization": f"Bearer {run_token}"},
        timeout=httpx.Timeout(30.0, connect=5.0),
        transport=httpx.AsyncHTTPTransport(trust_env=False, socket_options=SOCKET_OPTIONS),
        trust_env=False,
    )


async def carry_out(
    spec: RunSpec,
    orchestrator_url: str,
    log: Log,
    boot_facts: dict[str, Any],
    boot_acked: bool,
    opened: Executor | None = None,
    beside: MeasuringProcess | HarnessProcesses | None = None,
    *,
    usage: UsageLog,
) -> int:
    """Works on a claimed run until it is over and returns the exit code. `opened` is a sandbox that is already open,
    `beside` the processes that run the command of a command benchmark or a harness, `usage` the usage recorded so far."""
    terminated = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
    base = f"{orchestrator_url.rstrip('/')}/runner/runs/{spec.run_id}"
    engine = str(boot_facts.get("engine", ""))
    async with (
        orchestrator_client(spec.run_token) as client,
        Reporter(
            client,
            f"{base}/events",
            attempt=spec.attempt,
            heartbeat_s=spec.heartbeat_s,
            batch_s=spec.batch_s,
            log=log,
            boot_facts=boot_facts,
            boot_acked=boot_acked,
            usage=usage,
            patience_s=spec.patience_s,
        ) as reporter,
    ):
        work = asyncio.create_task(_attempt(spec, base, client, reporter, limits(engine), log, opened, beside))
        term = asyncio.create_task(terminated.wait())
        ends: set[asyncio.Future[Any]] = {work, term, reporter.stop}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if work.done() and not work.cancelled():
                return work.result()
        finally:
            term.cancel()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        if reporter.stop.done():
            return EXITS[reporter.stop.result()]
        log("run.terminated")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_S):
                await reporter.flush()
        return EXIT_TERMINATED


async def _attempt(
    spec: RunSpec,
    base: str,
    client: httpx.AsyncClient,
    reporter: Reporter,
    allowed: dict[str, float],
    log: Log,
    opened: Executor | None,
    beside: MeasuringProcess | HarnessProcesses | None,
) -> int:
    """Does all the work and returns once the last event is acknowledged."""
    failed: tuple[FailureReason, str, str | None] | None = None
    done = 0
    try:
        if spec.eval is not None:
            reporter.stage(Stage.PROVISION, **allowed)
            done = await _eval_work(spec, spec.eval, base, client, reporter, log, opened)
        elif spec.command is not None:
            reporter.stage(Stage.PROVISION, **allowed)
            done = await _command_work(spec, base, client, reporter, log, beside)
        elif spec.harness is not None:
            reporter.stage(Stage.PROVISION, **allowed)
            done = await _harness_work(spec, base, client, reporter, log, beside)
        elif items := items_of(spec):
            log("run.begin", items=len(items), finished_before=len(spec.finished))
            reporter.stage(Stage.PROVISION, **allowed)
            done = await _work(spec, base, client, reporter, items, log, opened)
    except RunDeferred as deferred:
        log("run.deferred", calls=deferred.calls)
        await reporter.flush()
        await _leave_log(client, f"{base}/artefacts/runner-{spec.attempt}.log", log)
        await reporter.deferred(deferred.calls)
        return EXIT_DONE
    except RunFailed as failure:
        failed = FailureReason(failure.reason), str(failure), failure.code
    except Exception as error:
        failed = FailureReason.RUNNER_ERROR, f"{type(error).__name__}: {error}", None
    if failed is None:
        log("run.done", items=done)
        reporter.stage(Stage.UPLOADING)
    else:
        log("run.failed", reason=failed[0].value, message=failed[1])
    await reporter.flush()
    await _leave_log(client, f"{base}/artefacts/runner-{spec.attempt}.log", log)
    if failed is not None:
        await reporter.failed(*failed)
        return EXIT_FAILED
    reporter.stage(Stage.FINISHED)
    await reporter.complete()
    return EXIT_DONE


async def _leave_log(client: httpx.AsyncClient, url: str, log: Log) -> None:
    """Uploads the runner's log as a file of the run while the token is still valid. The run does not fail if this fails."""
    try:
        answer = await client.put(url, content=log.kept(), timeout=LOG_UPLOAD_S)
        trouble = None if answer.is_success else f"status {answer.status_code}"
    except httpx.HTTPError as error:
        trouble = f"{type(error).__name__}: {error}"
    if trouble:
        log("run.log_not_left", trouble=trouble)


async def _work(
    spec: RunSpec,
    base: str,
    client: httpx.AsyncClient,
    reporter: Reporter,
    items: list[Item],
    log: Log,
    opened: Executor | None,
) -> int:
    problems = Problems(client, f"{base}/problems", ((item.benchmark, item.problem_id) for item in items), log)
    async with (
        _background(problems.fetch()),
        _model(spec) as loading,
        contextlib.AsyncExitStack() as judge_clients,
        _sandbox(spec, opened) as executor,
    ):
        judges_loading = {
            part.name: await judge_clients.enter_async_context(_client(spec, part.judge_model))
            for part in spec.benchmarks
            if part.judge_model is not None
        }
        if (why := become_ordinary(log)) is not None:
            reporter.log("warning", why)
        uid, level = os.geteuid(), executor.level

        def calls_of(client: LlmClient) -> Calls:
            return Calls(client, spec.concurrency, log, changed=reporter.beat_soon, reachable=lambda: reporter.reachable)

        calls = calls_of(await loading)
        judges = {name: calls_of(await judge) for name, judge in judges_loading.items()}
        reporter.stage(Stage.RUNNING, items=len(items), sandbox=level.name, sandbox_detail=level.sentence, uid=uid)
        work = Work(spec, items, reporter, problems, calls, executor, log, judges)
        reporter.waiting_for = lambda: (
            calls.waiting_for
            or next((f"the judge: {reason}" for judge in judges.values() if (reason := judge.waiting_for)), None)
        )
        return await work.run()


def _sandbox(spec: RunSpec, opened: Executor | None) -> AbstractAsyncContextManager[Executor]:
    if opened is None:
        return Executor.open(spec.sandbox_slots, spec.sandbox_uid_base, least=spec.sandbox_level)
    if not opened.level.has_all_of(spec.sandbox_level):
        raise SandboxUnavailableError(f"{opened.level.sentence} Level {spec.sandbox_level} is required.")
    return contextlib.aclosing(opened)  # closed when the work ends, so that the cost of closing is still counted


async def _eval_work(
    spec: RunSpec,
    task: EvalTask,
    base: str,
    client: httpx.AsyncClient,
    reporter: Reporter,
    log: Log,
    opened: Executor | None,
) -> int:
    log("eval.begin", kind=spec.kind, traces=task.traces)
    if not task.traces and task.code is not None:
        return 0
    async with (
        _model(spec) as loading,
        _sandbox(spec, opened) as executor,
    ):
        if (why := become_ordinary(log)) is not None:
            reporter.log("warning", why)
        uid, level = os.geteuid(), executor.level
        reporter.stage(Stage.RUNNING, items=task.traces, sandbox=level.name, sandbox_detail=level.sentence, uid=uid)
        if task.code is not None:
            return await execute(spec, task, base, client, executor, reporter, log)
        calls = Calls(await loading, 1, log, changed=reporter.beat_soon, reachable=lambda: reporter.reachable)
        return await generate(spec, task, base, client, calls, executor, reporter, log)


async def _command_work(
    spec: RunSpec, base: str, client: httpx.AsyncClient, reporter: Reporter, log: Log, beside: object
) -> int:
    assert spec.command is not None
    if not isinstance(beside, MeasuringProcess):
        raise _no_runner(spec.command.image)
    if (why := become_ordinary(log)) is not None:
        reporter.log("warning", why)
    log("command.begin", image=spec.command.image, repeats=spec.command.repeats)
    work = CommandWork(spec, spec.command, beside.link, reporter, log)
    return await work.run(base, client, {"uid": os.geteuid(), **beside.facts})


async def _harness_work(
    spec: RunSpec, base: str, client: httpx.AsyncClient, reporter: Reporter, log: Log, beside: object
) -> int:
    assert spec.harness is not None
    if not isinstance(beside, HarnessProcesses):
        raise _no_runner(spec.harness.image)
    if (why := become_ordinary(log)) is not None:
        reporter.log("warning", why)
    log("harness.begin", image=spec.harness.image, results=spec.harness.results.format.value)
    work = HarnessWork(spec, spec.harness, beside, reporter, log)
    return await work.run(base, client, {"uid": os.geteuid(), **beside.facts})


def _no_runner(image: str) -> RunFailed:
    sentence = f"the image {image} has no runner: the orchestrator is of another version"
    return RunFailed(FailureReason.RUNNER_ERROR, sentence)


def become_ordinary(log: Log) -> str | None:
    """Drops root for good. If the interpreter lies in a folder that only root may enter (such as root's home), imports
    would fail afterwards. The runner then stays root, as on a developer's machine without containers, and this returns
    why."""
    if os.geteuid() != 0:
        return None
    if all(map(_open_to_all, (os.__file__, httpx.__file__, __file__))):
        drop_privileges(RUNNER_UID)
        hide_memory()  # changing the user resets it
        return None
    why = "the runner stays root: only root can read the folder of its interpreter"
    log("run.still_root", why=why)
    return why


def _open_to_all(file: str) -> bool:
    path = Path(file).resolve()
    return path.stat().st_mode & stat.S_IROTH > 0 and all(up.stat().st_mode & stat.S_IXOTH for up in path.parents)


def _model(spec: RunSpec) -> AbstractAsyncContextManager[asyncio.Task[LlmClient]]:
    """The client of the measured model."""
    return _client(spec, None if spec.kind in UNASKING else spec.model)


@contextlib.asynccontextmanager
async def _client(spec: RunSpec, model: ModelSpec | None) -> AsyncIterator[asyncio.Task[LlmClient]]:
    """Loads the SDK's client in a thread; closes it at the end if it was loaded."""
    how = NoClient if model is None else partial(open_client, model, spec.gateway_url, spec.run_token)
    loading: asyncio.Task[LlmClient] = asyncio.create_task(asyncio.to_thread(how))
    try:
        yield loading
    finally:
        if loading.done() and not loading.cancelled() and loading.exception() is None:
            await loading.result().close()
        loading.cancel()


@contextlib.asynccontextmanager
async def _background(job: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(job)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
