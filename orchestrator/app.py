"""The composition root: `create_app(settings)`. Its lifespan opens and closes all services, in one place."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import structlog
from fastapi import FastAPI

from orchestrator.accounts.vault import load_vault
from orchestrator.accounts.wiring import open_accounts
from orchestrator.alerts.sending.mail import MailServer
from orchestrator.alerts.sending.webhooks import AllowedAddresses, WebhookSender
from orchestrator.alerts.service import AlertService, WebhookService
from orchestrator.archives.batch_archives import BatchSnapshot
from orchestrator.archives.routes import batch_snapshot
from orchestrator.archives.wiring import open_archives
from orchestrator.batches.service import BatchService
from orchestrator.commands.service import CommandRuns
from orchestrator.dashboard import routes as pages
from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.jobs import DatasetJobs
from orchestrator.datasets.wiring import open_benchmark_files
from orchestrator.db.migrate import migrate
from orchestrator.db.session import Database, database_url
from orchestrator.engines.engine import Engine
from orchestrator.engines.factory import EngineChoice, choose_engine
from orchestrator.engines.leaving import leave_nothing
from orchestrator.evals.jobs import EvalJobs
from orchestrator.evals.service import EvalService
from orchestrator.evals.training_data import trace_lines
from orchestrator.gateway.edge.router import Gateway, GatewayDeps
from orchestrator.gateway.providers.directory import ProviderDirectory
from orchestrator.gateway.wiring import abandon_ended, open_batches, open_gateway
from orchestrator.grading.agreement import AgreementService
from orchestrator.grading.service import GradeService
from orchestrator.grading.uploads import Uploads
from orchestrator.harnesses.service import HarnessRuns
from orchestrator.health.service import Readiness
from orchestrator.http import openapi, problems, routers
from orchestrator.http.access.authentication import load_token
from orchestrator.http.access.guard import Guard
from orchestrator.http.access.identity import Authority
from orchestrator.http.access.login_throttle import LoginThrottle
from orchestrator.http.access.rate_limits import RateLimits
from orchestrator.http.audit_trail import AuditBook
from orchestrator.http.context import Services
from orchestrator.http.middleware_stack import add_layers
from orchestrator.http.policy import MODEL_CALLS, set_policy
from orchestrator.http.route_table import RouteTable, include
from orchestrator.installation.identity import DataLock, Presence
from orchestrator.installation.wiring import open_installation
from orchestrator.jobs.service import JobService
from orchestrator.metrics.otlp import open_telemetry
from orchestrator.metrics.run_metrics import RunMetrics
from orchestrator.metrics.run_spans import report_ended_runs
from orchestrator.models.demo import seed_demo_models
from orchestrator.models.service import ModelCatalogue
from orchestrator.models.sync import ModelSync
from orchestrator.prices.service import PriceLists
from orchestrator.providers.wiring import open_providers
from orchestrator.retention.service import RunDeletion
from orchestrator.runs.intake.routes import RunnerDeps, runner_router
from orchestrator.runs.live.feed import Live
from orchestrator.runs.queueing.plan import PositionCache
from orchestrator.runs.wiring import open_runs
from orchestrator.schedules.wiring import open_schedules
from orchestrator.serving.gateway_processes import GatewayProcesses, shared_socket
from orchestrator.serving.runner_listener import RunnerListener
from orchestrator.settings import Settings
from orchestrator.startup import CannotStart
from orchestrator.system.clock import Clock, SystemClock
from orchestrator.system.files import private_directory
from orchestrator.system.held_memory import keep_returning
from orchestrator.system.version import own_version
from orchestrator.tasks.routes import TaskContext
from orchestrator.tasks.service import TaskService
from orchestrator.traces.service import TraceImport

log = structlog.get_logger()


def create_app(settings: Settings, *, clock: Clock | None = None, engine: Engine | None = None) -> FastAPI:
    """Build the whole service. `clock` and `engine` replace the real ones in tests."""
    clock = clock or SystemClock()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            async with open_services(app, settings, clock, engine) as services:
                app.state.services = services
                yield
        except CannotStart as error:
            app.state.cannot_start = error
            raise

    data_dir = settings.data.absolute()
    private_directory(data_dir)
    token, is_new = load_token(settings.token.get_secret_value() if settings.token else None, data_dir)
    app = FastAPI(
        title="Benchyard",
        summary="Measures language models: one short-lived container per run.",
        version=own_version(),
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.authority = Authority(token, clock)
    app.state.audit = AuditBook(clock)
    master_key = settings.master_key.get_secret_value() if settings.master_key else None
    app.state.vault = load_vault(master_key, settings.master_key_file, data_dir)
    app.state.rate_limits = RateLimits(clock)
    app.state.login_throttle = LoginThrottle()
    app.state.telemetry = open_telemetry(os.environ)
    app.state.login_link = f"{settings.address}/login?token={token}" if is_new else None
    problems.install(app)
    routers.install(app)
    pages.install(app)
    openapi.install(app)
    add_layers(app, settings, clock, pages.refusal)
    return app


@asynccontextmanager
async def open_services(
    app: FastAPI, settings: Settings, clock: Clock, given_engine: Engine | None
) -> AsyncIterator[Services]:
    data_dir = settings.data.absolute()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, app.state.telemetry.close)
        stack.callback(DataLock(data_dir).release)
        url = database_url(settings.database_url.get_secret_value() if settings.database_url else None, data_dir)
        await asyncio.to_thread(migrate, url)
        db = Database(url)
        stack.push_async_callback(db.close)
        installation = await open_installation(settings, db, data_dir, clock)
        stack.callback(Presence(installation.owner, installation.place).leave)
        await db.write(lambda s: seed_demo_models(s, clock.now()))
        catalogue = Catalogue(data_dir)
        await asyncio.to_thread(catalogue.prepare)
        live = Live(db)
        await live.start()
        stack.push_async_callback(live.close)

        choice = (
            EngineChoice.given(given_engine)
            if given_engine
            else choose_engine(settings, installation.instance, data_dir, installation.owner)
        )
        stack.push_async_callback(choice.engine.close)
        if settings.remove_on_stop:
            stack.push_async_callback(leave_nothing, choice.engine)
        several = settings.gateway_processes > 1
        gateway_processes = GatewayProcesses(settings.gateway_processes - 1, installation.name)
        listener = RunnerListener(
            port=settings.effective_runner_port,
            listen=choice.listen,
            public_host=choice.public_host,
            shared=shared_socket if several else None,
            opened=gateway_processes.listen_at if several else None,
        )
        stack.push_async_callback(listener.close)
        stack.push_async_callback(gateway_processes.close)

        def runner_url() -> str:
            return settings.runner_url or listener.url

        positions = PositionCache()
        rng = random.Random(os.urandom(8))
        directory = ProviderDirectory(os.environ)
        providers = await stack.enter_async_context(open_providers(db, clock, app.state.vault, directory, data_dir))
        accounts = await stack.enter_async_context(open_accounts(settings, db, clock, app.state.vault, directory))
        gateway = await stack.enter_async_context(
            open_gateway(
                settings, db, clock, installation.name, accounts.keys, positions, providers.book, app.state.telemetry
            )
        )
        _in_background(stack, abandon_ended(live, gateway))
        if app.state.telemetry.wanted:
            _in_background(stack, report_ended_runs(live, db, app.state.telemetry))
        price_lists = PriceLists(db, clock)
        await price_lists.apply()
        model_sync = ModelSync(db, clock, directory, price_lists=price_lists)
        _in_background(stack, model_sync.run_in_background())
        runs = await stack.enter_async_context(
            open_runs(
                settings,
                db,
                clock,
                choice.engine,
                catalogue,
                installation,
                listener,
                data_dir=data_dir,
                runner_url=runner_url,
                positions=positions,
                rng=rng,
            )
        )
        wake = runs.signals.wake
        batch_keeper = open_batches(settings, db, clock, runs.leadership, gateway, wake)
        commands = CommandRuns(settings, runs.service, engine_name=choice.engine.name)
        harnesses = HarnessRuns(settings, runs.service, engine_name=choice.engine.name)
        batches = BatchService(db, settings, clock, runs.service, commands, harnesses, wake=wake)
        eval_jobs = EvalJobs(db, settings, clock, runs.service, wake=wake)
        dataset_jobs = DatasetJobs(clock)
        stack.push_async_callback(asyncio.to_thread, dataset_jobs.close)
        uploads = Uploads(data_dir / "uploads", settings.room)
        await asyncio.to_thread(uploads.clear)

        _serve_runners(
            app,
            listener,
            settings,
            gateway,
            RunnerDeps(
                settings=settings,
                clock=clock,
                db=db,
                catalogue=catalogue,
                intake=runs.intake,
                hand_off=runs.hand_off,
                artefacts=runs.artefacts,
                gateway_url=lambda: f"{runner_url()}/gateway",
                wake=runs.signals.look,
                trace_lines=trace_lines,
            ),
        )
        runs.loops.start()
        _in_background(stack, batch_keeper.keep_on())

        allowed = AllowedAddresses(settings.webhook_allow)
        smtp, mail = settings.smtp_url, None
        if smtp is not None and settings.smtp_from is not None:
            mail = MailServer.of(smtp.get_secret_value(), settings.smtp_from)
        sender = WebhookSender(clock, allowed.transport, base_url=settings.address, mail=mail)
        schedules = await stack.enter_async_context(
            open_schedules(
                db,
                catalogue,
                settings,
                clock,
                runs.leadership,
                runs.service,
                engine_name=choice.engine.name,
                rng=rng,
                sender=sender,
                wake=wake,
                quiet=installation.is_quiet,
            )
        )

        async def describe_batch(batch_id: str) -> BatchSnapshot:
            return await batch_snapshot(db, await batches.find(batch_id))

        archives = await stack.enter_async_context(
            open_archives(
                db,
                runs.leadership,
                clock,
                settings,
                data_dir,
                describe_batch=describe_batch,
                has_room=lambda: runs.fleet.disk_has_room,
                rng=rng,
                quiet=installation.is_quiet,
            )
        )
        deletion = RunDeletion(
            db,
            clock,
            runs.leadership,
            data_dir=data_dir,
            # A copy shares its original's object store, and nobody asked it to delete old results.
            remove_archive=None if installation.is_quiet else archives.runs.remove_stored,
            keep_days=0 if installation.is_quiet else settings.result_retention_days,
        )
        _in_background(stack, deletion.keep_on())
        _in_background(stack, keep_returning())
        run_metrics = RunMetrics(db, clock)
        await run_metrics.begin()
        authority: Authority = app.state.authority
        tasks = TaskService(db, clock, settings, runs.intake, has_room=lambda: runs.fleet.disk_has_room)
        app.state.task_context = TaskContext(tasks, runs.artefacts, settings, clock, authority.signature, runs.signals.look)
        app.state.rate_limits.open(accounts.limits)
        stack.callback(app.state.rate_limits.open, None)
        authority.open(db, accounts.sessions)
        stack.callback(authority.open, None)
        app.state.audit.open(db)
        stack.callback(app.state.audit.open, None)
        yield Services(
            settings=settings,
            clock=clock,
            db=db,
            installation=installation,
            catalogue=catalogue,
            benchmark_files=open_benchmark_files(settings, catalogue),
            models=ModelCatalogue(db, clock, price_lists),
            price_lists=price_lists,
            runs=runs.service,
            commands=commands,
            harnesses=harnesses,
            schedules=schedules,
            alerts=AlertService(db, clock),
            webhooks=WebhookService(db, clock, allowed, sender, os.urandom),
            grades=GradeService(db, catalogue, settings, clock, runs.service, wake=wake),
            agreements=AgreementService(db, catalogue, settings, clock, runs.service, wake=wake),
            batches=batches,
            archives=archives,
            deletion=deletion,
            uploads=uploads,
            evals=EvalService(db, clock),
            eval_jobs=eval_jobs,
            trace_import=TraceImport(db, clock),
            dataset_jobs=dataset_jobs,
            jobs=JobService(runs.service, eval_jobs, dataset_jobs, look=runs.signals.look),
            fleet=runs.fleet,
            readiness=Readiness(db, runs.fleet, listener, runs.loops, clock, gateway_processes),
            pool=runs.pool,
            agents=runs.agents,
            live=live,
            run_metrics=run_metrics,
            waiting_for=gateway.coordinator.status,
            request_notes=gateway.coordinator.notes,
            door=listener,
            loops=runs.loops,
            signals=runs.signals,
            authority=authority,
            accounts=accounts,
            providers=providers,
            sync_models=model_sync.run,
        )
        live.end_streams()


def _serve_runners(
    app: FastAPI, listener: RunnerListener, settings: Settings, gateway: GatewayDeps, deps: RunnerDeps
) -> None:
    """Runners reach their API and the gateway at a separate address as well as at the service's."""
    runner_app = FastAPI(title="Benchyard runner API", docs_url=None, redoc_url=None, openapi_url=None)
    problems.install(runner_app)
    runners = runner_router(deps)
    for target in (app, runner_app):
        include(target, runners)
        target.mount("/gateway", Gateway(gateway, problems.not_found))
        set_policy(target.routes[-1], MODEL_CALLS)
    app.state.routes.serve(app)
    runner_routes = RouteTable(settings)
    runner_routes.serve(runner_app)
    listener.app = Guard(Gateway(gateway, runner_app), routes=runner_routes)


def _in_background(stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> None:
    stack.callback(asyncio.create_task(work).cancel)
