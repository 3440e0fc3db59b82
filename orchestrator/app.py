"""The composition root: `create_app(settings)`. Its lifespan opens everything and closes it again, in one place."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog
from fastapi import FastAPI

from orchestrator.accounts import routes as accounts
from orchestrator.accounts.vault import load_vault
from orchestrator.accounts.wiring import open_accounts
from orchestrator.alerts import routes as schedule_alerts
from orchestrator.alerts import share_routes as schedule_shares
from orchestrator.alerts.service import WebhookService
from orchestrator.alerts.webhook_sender import AllowedAddresses, WebhookSender
from orchestrator.archives import routes as archives
from orchestrator.archives.batch_keeper import BatchAsItIs
from orchestrator.archives.wiring import open_archives
from orchestrator.audit import routes as audit
from orchestrator.batches import routes as batches
from orchestrator.batches.service import BatchService
from orchestrator.benchmarks import routes as benchmarks
from orchestrator.commands import routes as commands
from orchestrator.commands.service import CommandRuns
from orchestrator.costs import machine_routes as machine_costs
from orchestrator.costs import routes as quotes
from orchestrator.dashboard import routes as pages
from orchestrator.datasets import routes as datasets
from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.jobs import DatasetJobs
from orchestrator.db.migrate import migrate
from orchestrator.db.session import Database, database_url
from orchestrator.engines.engine import Engine
from orchestrator.engines.factory import EngineChoice, choose_engine
from orchestrator.engines.leaving import leave_nothing
from orchestrator.evals import routes as evals
from orchestrator.evals import set_routes as eval_sets
from orchestrator.evals.event_store import EvalTaking
from orchestrator.evals.jobs import EvalJobs
from orchestrator.evals.lines import trace_lines
from orchestrator.evals.service import EvalService
from orchestrator.fleet import agent_routes as agents
from orchestrator.fleet import routes as fleet
from orchestrator.fleet.agents import Agents
from orchestrator.fleet.wake_ups import Bells
from orchestrator.gateway import call_routes as calls
from orchestrator.gateway.edge.router import Gateway
from orchestrator.gateway.ledger import queries as call_queries
from orchestrator.gateway.wiring import abandon_ended, open_gateway
from orchestrator.grading import routes as grades
from orchestrator.grading.service import GradeService
from orchestrator.grading.uploads import Uploads
from orchestrator.health import routes as health
from orchestrator.health.service import Readiness
from orchestrator.http import openapi, problems
from orchestrator.http.audit_trail import AuditBook
from orchestrator.http.authentication import COOKIE, Gate, load_token
from orchestrator.http.callers import Authority
from orchestrator.http.context import Services
from orchestrator.http.cookies import cookie_line
from orchestrator.http.guard import Guard
from orchestrator.http.login_throttle import GuessDelay
from orchestrator.http.middleware_stack import add_outer_layers
from orchestrator.http.rate_limits import Pace
from orchestrator.http.routing import body_cap_of, deadline_of, needs_of
from orchestrator.http.stream_revocation import Leash
from orchestrator.installation.identity import DataLock
from orchestrator.installation.machine import machine_of
from orchestrator.installation.presence import Presence
from orchestrator.installation.remembered import Own, remember
from orchestrator.installation.service import settle
from orchestrator.jobs import routes as jobs
from orchestrator.leaderboard import routes as schedule_leaderboard
from orchestrator.limits import routes as limits
from orchestrator.metrics.run_metrics import RunMetrics
from orchestrator.models import routes as models
from orchestrator.models.demo import seed_demo_models
from orchestrator.models.sync import ModelSync
from orchestrator.provider_keys import routes as keys
from orchestrator.retention import routes as run_deletion
from orchestrator.retention.queries import deletion_of
from orchestrator.retention.service import RunDeletion
from orchestrator.runs import alias_routes as aliases
from orchestrator.runs import artefact_routes as artefacts
from orchestrator.runs import export_routes as exports
from orchestrator.runs import routes as container_runs
from orchestrator.runs import stream_routes as streams
from orchestrator.runs.intake.artefacts import ArtefactStore
from orchestrator.runs.intake.planned_calls import PositionCache
from orchestrator.runs.intake.routes import RunnerDeps, runner_router
from orchestrator.runs.intake.service import Intake
from orchestrator.runs.live import Live
from orchestrator.runs.plan import uid_shift
from orchestrator.runs.scheduling.dispatcher import Dispatcher, Hold, LaunchPolicy
from orchestrator.runs.scheduling.fleet import Fleet
from orchestrator.runs.scheduling.leadership import Leadership
from orchestrator.runs.scheduling.loops import Loops, Signals
from orchestrator.runs.scheduling.reconciler import LeasePolicy, Reconciler
from orchestrator.runs.service import RunService
from orchestrator.runs.warm_pool.hand_off import HandOver
from orchestrator.runs.warm_pool.policy import PoolLimits, PoolSize
from orchestrator.runs.warm_pool.pool import Pool, PoolPolicy
from orchestrator.schedules import routes as schedules
from orchestrator.schedules.wiring import open_schedules
from orchestrator.serving.runner_listener import RunnerDoor
from orchestrator.settings import Settings
from orchestrator.sign_in import command_line_routes as command_line
from orchestrator.sign_in import routes as auth_paths
from orchestrator.startup import CannotStart
from orchestrator.system.clock import Clock, SystemClock
from orchestrator.system.private_files import private_directory
from orchestrator.tasks import routes as task_routes
from orchestrator.tasks.routes import TaskDesk
from orchestrator.tasks.service import TaskService
from orchestrator.tokens import routes as tokens
from orchestrator.traces import routes as traces
from orchestrator.traces.service import TraceImport

log = structlog.get_logger()


def create_app(settings: Settings, *, clock: Clock | None = None, engine: Engine | None = None) -> FastAPI:
    """The whole service. `clock` and `engine` replace the real ones in tests."""
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
    token, made = load_token(settings.token.get_secret_value() if settings.token else None, data_dir)
    app = FastAPI(
        title="Benchyard",
        summary="Measures language models: one short-lived container per run.",
        version="0.1.0",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.authority = Authority(token, clock)
    app.state.audit = AuditBook(clock)
    master_key = settings.master_key.get_secret_value() if settings.master_key else None
    app.state.vault = load_vault(master_key, settings.master_key_file, data_dir)
    app.state.pace = Pace(clock)
    app.state.guess_delay = GuessDelay()
    app.state.login_link = f"{settings.address}/login?token={token}" if made else None
    problems.install(app)
    routed = (
        container_runs,
        run_deletion,
        commands,
        calls,
        quotes,
        grades,
        eval_sets,
        traces,
        evals,
        jobs,
        exports,
        artefacts,
        batches,
        archives,
        schedules,
        schedule_alerts,
        schedule_leaderboard,
        schedule_shares,
        models,
        benchmarks,
        datasets,
        fleet,
        agents,
        machine_costs,
        tokens,
        keys,
        limits,
        accounts,
        aliases,
        auth_paths,
        command_line,
        audit,
        streams,
        health,
    )
    for module in routed:
        app.include_router(module.router)
    for router in (aliases.bare, task_routes.router, task_routes.files, task_routes.bare):
        app.include_router(router)
    pages.install(app)
    openapi.install(app)
    # The last one added is the outermost.
    app.add_middleware(Leash, clock=clock)
    app.add_middleware(
        Gate,
        authority=app.state.authority,
        needs=needs_of(settings),
        public_url=settings.public_url,
        page_error=pages.refusal,
        pace=app.state.pace,
        cookie=lambda connection, value: cookie_line(connection, settings, COOKIE, value, int(settings.session_max_s)),
    )
    add_outer_layers(app, settings)
    return app


@asynccontextmanager
async def open_services(
    app: FastAPI, settings: Settings, clock: Clock, given_engine: Engine | None
) -> AsyncIterator[Services]:
    data_dir = settings.data.absolute()
    async with AsyncExitStack() as stack:
        stack.callback(DataLock(data_dir).release)
        url = database_url(settings.database_url.get_secret_value() if settings.database_url else None, data_dir)
        await asyncio.to_thread(migrate, url)
        db = Database(url)
        stack.push_async_callback(db.close)
        machine = await asyncio.to_thread(machine_of, settings)
        installation = await settle(
            db,
            data_dir,
            clock,
            machine=machine,
            wanted_name=settings.instance,
            as_copy=settings.as_copy,
        )
        name = installation.name
        remember(data_dir, Own(installation.instance, installation.owner), machine)
        stack.callback(Presence(installation.owner, installation.place).leave)
        await db.write(lambda s: seed_demo_models(s, clock.now()))
        catalogue = Catalogue(data_dir)
        await asyncio.to_thread(catalogue.prepare)

        choice = (
            EngineChoice.given(given_engine)
            if given_engine
            else choose_engine(settings, installation.instance, data_dir, installation.owner)
        )
        engine = choice.engine
        stack.push_async_callback(engine.close)
        if settings.remove_on_stop:
            stack.push_async_callback(leave_nothing, engine)
        door = RunnerDoor(port=settings.effective_runner_port, listen=choice.listen, public_host=choice.public_host)
        stack.push_async_callback(door.close)

        live = Live(db)
        await live.start()
        stack.push_async_callback(live.close)
        runners_see = settings.runner_url or None

        def runner_url() -> str:
            return runners_see or door.url

        positions = PositionCache()
        people = await stack.enter_async_context(open_accounts(settings, db, clock, app.state.vault))
        gateway = await stack.enter_async_context(open_gateway(settings, db, clock, name, people.keys, positions))
        abandoning = asyncio.create_task(abandon_ended(live, gateway))
        stack.callback(abandoning.cancel)
        model_sync = ModelSync(db, clock, os.environ)
        syncing = asyncio.create_task(model_sync.run_in_background())
        stack.callback(syncing.cancel)
        fleet_view = Fleet(engine, db, settings, clock, data_dir)

        def hold() -> Hold | None:
            if (held := fleet_view.hold()) is not None:
                return held
            if not door.is_open:
                return Hold(door.error or "The address for runners is not open yet.")
            return None

        signals = Signals()
        leadership = Leadership(db, clock, name, settings.leader_lease_s)
        rng = random.Random(os.urandom(8))
        instance_types = {each: settings.instance_type(each) for each in settings.instance_types}
        pool = Pool(
            db,
            leadership,
            engine,
            clock,
            PoolPolicy(
                sizes={each: PoolSize(*settings.pool(each)) for each in settings.instance_types},
                instance_types=instance_types,
                image=settings.runner_image,
                orchestrator_url=runner_url,
                limits=PoolLimits(settings.start_timeout_s, silent_s=settings.lease_s + settings.suspect_s),
                uid_shift=uid_shift(installation.owner),
            ),
            capacity=fleet_view.capacity,
            look=signals.look,
        )
        bells = Bells()
        intake = Intake(
            db,
            clock,
            lease_s=settings.lease_s,
            evals=EvalTaking(),
            positions=positions,
            has_call=call_queries.has_settled,
        )
        hand_over = HandOver(db, clock, intake, came_up=pool.came_up)
        dispatcher = Dispatcher(
            db,
            leadership,
            engine,
            clock,
            LaunchPolicy(
                instance_types=instance_types,
                image=settings.runner_image,
                orchestrator_url=runner_url,
                start_timeout_s=settings.start_timeout_s,
                parallel_launches=2 * (os.cpu_count() or 1),
                kind_limits=settings.kind_limits,
                uid_shift=uid_shift(installation.owner),
            ),
            pool,
            hand_over,
            ring=bells.ring,
            capacity=fleet_view.capacity,
            hold=hold,
            rng=rng,
        )
        reconciler = Reconciler(
            db,
            leadership,
            engine,
            clock,
            LeasePolicy(settings.lease_s, settings.suspect_s, settings.start_timeout_s, settings.reconcile_s),
            pool=pool,
            launching=dispatcher.launching,
            rng=rng,
            on_change=signals.wake,
        )
        runs = RunService(
            db, catalogue, settings, clock, capacity=fleet_view.capacity, wake=signals.wake, deletion_of=deletion_of
        )
        command_runs = CommandRuns(db, settings, clock, runs, engine_name=engine.name, wake=signals.wake)
        grade_service = GradeService(db, catalogue, settings, clock, runs, wake=signals.wake)
        batch_service = BatchService(db, settings, clock, runs, command_runs, wake=signals.wake)
        dataset_jobs = DatasetJobs(clock)
        stack.push_async_callback(asyncio.to_thread, dataset_jobs.close)
        uploads = Uploads(data_dir / "uploads", settings.room)
        await asyncio.to_thread(uploads.clear)
        loops = Loops(
            clock=clock,
            engine=engine,
            fleet=fleet_view,
            leadership=leadership,
            reconciler=reconciler,
            dispatcher=dispatcher,
            pool=pool,
            door=door,
            signals=signals,
            interval_s=settings.reconcile_s,
            tidy=runs.tidy,
        )
        artefact_store = ArtefactStore(
            data_dir / "artefacts",
            db,
            clock,
            max_bytes=settings.max_artefact_bytes,
            run_bytes=settings.max_run_artefact_bytes,
        )
        deps = RunnerDeps(
            settings=settings,
            clock=clock,
            db=db,
            catalogue=catalogue,
            intake=intake,
            hand_over=hand_over,
            artefacts=artefact_store,
            gateway_url=lambda: f"{runner_url()}/gateway",
            wake=signals.look,
            trace_lines=trace_lines,
        )
        runner_app = FastAPI(title="Benchyard runner API", docs_url=None, redoc_url=None, openapi_url=None)
        problems.install(runner_app)
        for target in (app, runner_app):
            target.include_router(runner_router(deps))
        app.mount("/gateway", Gateway(gateway, problems.not_found))
        door.app = Guard(Gateway(gateway, runner_app), body_cap=body_cap_of(settings), deadline=deadline_of(settings))
        loops.start()
        stack.push_async_callback(loops.close)
        allowed = AllowedAddresses(settings.webhook_allow)
        sender = WebhookSender(clock, allowed.transport)
        schedule_service = await stack.enter_async_context(
            open_schedules(
                db,
                catalogue,
                settings,
                clock,
                leadership,
                runs,
                rng=rng,
                sender=sender,
                wake=signals.wake,
                quiet=installation.is_quiet,
            )
        )

        async def describe_batch(batch_id: str) -> BatchAsItIs:
            return await archives.batch_as_it_is(db, await batch_service.find(batch_id))

        kept = await stack.enter_async_context(
            open_archives(
                db,
                leadership,
                clock,
                settings,
                data_dir,
                describe_batch=describe_batch,
                has_room=lambda: fleet_view.disk_has_room,
                rng=rng,
                quiet=installation.is_quiet,
            )
        )
        deletion = RunDeletion(
            db,
            clock,
            leadership,
            data_dir=data_dir,
            # A copy shares its original's object store, and nobody has asked it to delete old results.
            remove_archive=None if installation.is_quiet else kept.runs.remove_stored,
            keep_days=0 if installation.is_quiet else settings.result_retention_days,
        )
        deleting = asyncio.create_task(deletion.keep_on())
        stack.callback(deleting.cancel)
        app.state.pace.open(people.limits)
        stack.callback(app.state.pace.open, None)
        run_metrics = RunMetrics(db, clock)
        await run_metrics.begin()
        authority: Authority = app.state.authority
        tasks = TaskService(db, clock, settings, intake, has_room=lambda: fleet_view.disk_has_room)
        app.state.task_desk = TaskDesk(tasks, artefact_store, settings, clock, authority.signature, signals.look)
        authority.open(db, people.sessions)
        app.state.audit.open(db)
        stack.callback(authority.open, None)
        stack.callback(app.state.audit.open, None)
        yield Services(
            settings=settings,
            clock=clock,
            db=db,
            installation=installation,
            catalogue=catalogue,
            runs=runs,
            commands=command_runs,
            schedules=schedule_service,
            webhooks=WebhookService(db, clock, allowed, sender, os.urandom),
            grades=grade_service,
            batches=batch_service,
            archives=kept,
            deletion=deletion,
            uploads=uploads,
            evals=EvalService(db, clock),
            eval_jobs=EvalJobs(db, settings, clock, runs, wake=signals.wake),
            trace_import=TraceImport(db, clock),
            dataset_jobs=dataset_jobs,
            fleet=fleet_view,
            readiness=Readiness(db, fleet_view, door, loops, clock),
            pool=pool,
            agents=Agents(db, clock, instance_types, bells, start_timeout_s=settings.start_timeout_s),
            live=live,
            run_metrics=run_metrics,
            waiting_for=gateway.desk.status,
            door=door,
            loops=loops,
            signals=signals,
            authority=authority,
            accounts=people,
            sync_models=model_sync.run,
        )
        live.end_streams()
