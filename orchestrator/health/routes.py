"""Liveness, readiness, and metrics for Prometheus."""

from __future__ import annotations

from fastapi import Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest
from starlette.responses import JSONResponse, PlainTextResponse

from orchestrator.accounts import queries as account_queries
from orchestrator.db.workspaces import acting_as, current_actor
from orchestrator.http.access.authentication import WORKSPACE_HEADER
from orchestrator.http.access.identity import Caller
from orchestrator.http.context import Context, Services
from orchestrator.http.policy import ANYONE, READ, Policy, Router
from orchestrator.jobs import queries as job_queries
from orchestrator.metrics.run_metrics import read_now
from orchestrator.runs.lifecycle import MAX_WITHOUT_PROGRESS, Status
from orchestrator.scopes import Role, Scope

router = Router(tags=["health"])


@router.get("/healthz", policy=Policy(ANYONE))
async def healthz() -> dict[str, str]:
    """The process is alive."""
    return {"status": "ok"}


@router.get("/readyz", policy=Policy(ANYONE))
async def readyz(context: Context) -> Response:
    """Whether a run could be started now: a sentence on each component, and 503 if one of them fails."""
    parts = await context.readiness.look()
    problems = [f"{part.name}: {part.sentence}" for part in parts if not part.ok]
    original = context.installation.copy_of
    body = {
        "status": "unready" if problems else "ready",
        "problems": problems,
        "parts": {part.name: {"ok": part.ok, "sentence": part.sentence} for part in parts},
        "leader": context.loops.leads,
        "copy_of": {"instance": original.instance, "since": original.since} if original else None,
        "notice": context.installation.notice,
    }
    return JSONResponse(body, 503 if problems else 200, {"retry-after": "5"} if problems else None)


@router.get("/metrics", policy=Policy(READ, open_on_loopback=True), response_class=PlainTextResponse)
async def metrics(request: Request, context: Context) -> Response:
    """Prometheus metrics."""
    caller: Caller | None = request.scope.get("benchyard.caller")
    owner = caller is not None and caller.role is Role.OWNER
    with acting_as(None if owner else current_actor()):
        return await _metrics(request, context)


async def _metrics(request: Request, context: Services) -> Response:
    registry = CollectorRegistry()
    runs = Gauge("benchyard_runs", "Runs by status", ["status"], registry=registry)
    jobs = Gauge("benchyard_jobs", "Jobs by kind and status", ["kind", "status"], registry=registry)
    dead = Gauge("benchyard_dead_letters", "Jobs given up after 3 attempts, by kind", ["kind"], registry=registry)
    oldest = Gauge("benchyard_oldest_pending_seconds", "Age of the oldest pending job, by kind", ["kind"], registry=registry)
    now = context.clock.now()
    figures = await context.db.read(lambda s: job_queries.figures(s, MAX_WITHOUT_PROGRESS))
    for (kind, status), count in figures.runs.items():
        jobs.labels(kind, status).set(count)
        runs.labels(status).inc(count)
        if status == Status.FAILED:
            dead.labels(kind).set(figures.dead_letters.get(kind, 0))
        if status == Status.PENDING:
            oldest.labels(kind).set((now - figures.oldest_pending[kind]).total_seconds())
    load = await context.fleet.load()
    Gauge("benchyard_instances_used", "Live containers", registry=registry).set(load.instances)
    Gauge("benchyard_instances_max", "Most containers at once", registry=registry).set(context.settings.max_instances)
    Gauge("benchyard_vcpu_used", "vCPU of live containers", registry=registry).set(load.vcpu)
    Gauge("benchyard_memory_used_bytes", "Memory of live containers", registry=registry).set(load.memory_bytes)
    ready = Gauge("benchyard_warm_runners", "Runners that stand ready", ["instance_type"], registry=registry)
    for pool in await context.fleet.pools():
        ready.labels(pool.instance_type).set(pool.ready)
    hour = await context.fleet.last_hour()
    waits = Gauge("benchyard_queue_wait_seconds", "Wait of runs begun in the last hour", ["of"], registry=registry)
    waits.labels("mean").set(hour.mean_wait_s)
    waits.labels("longest").set(hour.longest_wait_s)
    Gauge("benchyard_starts_last_hour", "Attempts begun", registry=registry).set(hour.starts)
    Gauge("benchyard_starts_refused_last_hour", "Starts refused or too slow", registry=registry).set(hour.refused)
    Gauge("benchyard_cpu_held_share", "Share of time held back by CPU limits", registry=registry).set(hour.held_share)
    up = context.fleet.error is None and context.fleet.info is not None
    Gauge("benchyard_engine_up", "Whether the engine answers", registry=registry).set(up)
    Gauge("benchyard_leader", "Whether this orchestrator leads", registry=registry).set(context.loops.leads)
    Gauge("benchyard_stream_clients", "Open live streams", registry=registry).set(context.live.clients)
    age = context.clock.monotonic() - context.loops.last_tick
    Gauge("benchyard_tick_age_seconds", "Seconds since the last round of the loops", registry=registry).set(age)
    everything = await _may_see_everything(request, context)
    names = everything or current_actor() is not None
    await context.db.read(lambda session: read_now(session, registry, now, with_names=names))
    text = generate_latest(registry)
    if everything:
        await context.run_metrics.catch_up()
        text += generate_latest(context.run_metrics.registry)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


async def _may_see_everything(request: Request, context: Services) -> bool:
    """Whether names of all workspaces may be shown: to owners, or to everybody if there is only one workspace."""
    if "benchyard.caller" in request.scope:  # metrics require a token here
        return current_actor() is None
    if len(await context.db.read(account_queries.workspaces)) == 1:
        return True
    if WORKSPACE_HEADER in request.headers:  # a request for one workspace sees no others
        return False
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    caller = await context.authority.by_token(token.strip()) if scheme.lower() == "bearer" else None
    return caller is not None and caller.scope.allows(Scope.OWNER)
