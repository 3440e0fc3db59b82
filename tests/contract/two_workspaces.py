"""Two workspaces with one of everything each, full of words that the other must never see, and somebody of each role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx
from sqlmodel import Session

from orchestrator.accounts.tables import Membership, User, Workspace
from orchestrator.alerts.tables import Alert, Webhook, WebhookDelivery
from orchestrator.batches.tables import Batch
from orchestrator.db.workspaces import acting_as
from orchestrator.evals.tables import Eval, EvalExecution, EvalJob, EvalSet
from orchestrator.gateway.ledger.tables import DaySpending, GatewayCall
from orchestrator.limits.tables import LimitRow
from orchestrator.provider_keys.tables import ProviderKey
from orchestrator.runs.live import queries as event_queries
from orchestrator.runs.queueing.drafts import EvalGenerateTask
from orchestrator.runs.tables import Artefact
from orchestrator.schedules.tables import Schedule, ScheduleFire, SchedulePanel
from orchestrator.system.identifiers import token_hash, uuid7
from orchestrator.tokens.tables import ApiToken
from orchestrator.traces.tables import Trace, TraceFeedback
from tests.manual_clock import START
from tests.rows import a_model, a_run, an_attempt, an_item
from tests.served import TOKEN, Service

ROLES = ("viewer", "member", "admin")
SAME = {"sec-fetch-site": "same-origin"}


@dataclass(frozen=True)
class Place:
    """One workspace: its id, and the ids of what is in it, by the names that paths have for them."""

    slug: str
    id: int
    things: dict[str, str]

    @property
    def secret(self) -> str:
        return f"canary-{self.slug}"


@dataclass(frozen=True)
class World:
    service: Service
    alpha: Place
    beta: Place
    callers: dict[str, httpx.AsyncClient]


def fill(session: Session, slug: str, number: int) -> Place:
    place = Workspace(slug=slug, name=f"canary-{slug} place", created_at=START)
    session.add(place)
    session.flush()
    secret, now, at = f"canary-{slug}", START, {"created_at": START, "updated_at": START}
    model = a_model(f"model-of-{slug}")
    session.add(model)
    user = User(issuer="https://id.example", subject=secret, email=f"{secret}@example.com", name=secret, created_at=now)
    session.add(user)
    session.flush()
    session.add(Membership(user_id=user.id or 0, workspace_id=place.id or 0, role="admin", created_at=now))
    own = {"workspace_id": place.id}
    item = {"benchmark": "sample", "sample_index": 0, "outcome": "passed"}
    batch_id, set_id, eval_id, job_id = (uuid7(now) for _ in range(4))
    score = {"estimate": 0.5, "low": 0.4, "high": 0.6, "n": 1, "comparable": True}
    run = a_run(
        model.id or 0,
        **own,
        status="completed",
        batch_id=batch_id,
        batch_slot=0,
        score=score,
        items_done=1,
        started_at=now,
        completed_at=now,
        error_message=secret,
        attempt=1,
    )
    open_run = a_run(model.id or 0, **own, status="running", attempt=1, error_message=secret)
    task = EvalGenerateTask(name=secret, examples=[])
    job = a_run(model.id or 0, **own, id=job_id, kind="eval_generate", status="completed", task=task)
    session.add_all(
        [
            run,
            open_run,
            job,
            Batch(id=batch_id, **own, external_id=number, name=secret, request={"note": secret}, created_at=now),
            EvalSet(id=set_id, **own, name=secret, description=secret, **at),
            ApiToken(**own, name=secret, secret_hash=token_hash(secret), scope="read", created_at=now),
        ]
    )
    session.flush()
    key = ProviderKey(
        **own,
        name=secret,
        provider="openai",
        origin=f"https://{secret}.example",
        sealed=secret,
        hint="1234",
        created_by=secret,
        **at,
    )
    session.add(key)
    session.add(LimitRow(**own, whose="everyone", updated_by=secret, updated_at=now))
    trace = Trace(**own, id=f"trace-of-{slug}", project=secret, digest=secret, data={"input": secret}, created_at=now)
    hook = Webhook(**own, url=f"https://{secret}.example/", secret=secret, created_at=now)
    alert = Alert(**own, uid=secret, model_id=model.id or 0, kind="run.failed", title=secret, run_id=run.id, at=now)
    session.add_all([trace, hook, alert])
    session.flush()
    session.add_all(
        [
            an_attempt(run.id, token=None, log_tail=secret, ended_at=now, removed_at=now, vcpu_s=1.0, gib_s=1.0),
            an_attempt(open_run.id, token=None),
            an_item(run.id, secret, detail=secret, data={**item, "problem_id": secret, "detail": secret}),
            Artefact(run_id=run.id, name="a.txt", attempt=1, size_bytes=1, sha256="0" * 64, created_at=now),
            GatewayCall(
                run_id=run.id,
                call_key=secret,
                request_hash="x",
                provider="demo",
                model=secret,
                state="settled",
                error=secret,
                created_at=now,
            ),
            DaySpending(day=now.date().isoformat(), **own, model_id=model.id or 0, calls=1, settled_usd=1.0),
            TraceFeedback(eval_set_id=set_id, trace_number=trace.number or 0, rating="positive", note=secret, **at),
            Eval(
                id=eval_id,
                **own,
                eval_set_id=set_id,
                name=secret,
                version=1,
                code=secret,
                model_id=model.id or 0,
                run_id=job_id,
                training_n=1,
                training_right=1,
                held_out_n=1,
                held_out_right=1,
                tests=[],
                rounds=[],
                **at,
            ),
            EvalJob(run_id=job_id, eval_set_id=set_id, eval_id=eval_id, detail=secret),
            Schedule(
                **own,
                model_id=model.id or 0,
                cron_expression="0 9 * * 1",
                sample_size=1,
                benchmarks=["sample"],
                baseline_run_id=run.id,  # so that nobody's DELETE takes it away from the other tests
                **at,
            ),
            SchedulePanel(
                **own,
                model_id=model.id or 0,
                version=1,
                seed=0,
                draw="all",
                how=secret,
                benchmarks=[{"name": "sample", "adapter": "x", "pack_digest": "d", "problem_ids": [secret]}],
                problems=1,
                created_at=now,
            ),
            ScheduleFire(
                **own,
                model_id=model.id or 0,
                instant=now,
                outcome="fired",
                run_id=run.id,
                panel_version=1,
                detail=secret,
                recorded_at=now,
            ),
            WebhookDelivery(
                webhook_id=hook.id or 0, alert_id=alert.id or 0, not_before=now, state="dead", last_error=secret
            ),
        ]
    )
    session.flush()
    session.add(
        EvalExecution(eval_id=eval_id, trace_number=trace.number or 0, run_id=job_id, passed=False, reason=secret, at=now)
    )
    event_queries.append(session, "log", now, run_id=run.id, attempt=1, data={"message": secret, "level": "info"})
    token = session.exec(_token(secret)).one()
    things = {
        "run_id": run.id,
        "job_id": job_id,
        "external_id": str(number),
        "task_id": f"{run.id}.1",
        "batch_id": batch_id,
        "set_id": set_id,
        "eval_id": eval_id,
        "trace_id:path": trace.id,
        "model_id:path": model.slug,
        "model_id": str(model.id),
        "webhook_id": str(hook.id),
        "alert_id": str(alert.id),
        "token_id": str(token),
        "slug": slug,
        "user_id": str(user.id),
        "position": "0",
        "key_id": str(key.id),
        "whose": "everyone",
        "name": "a.txt",
        "text": "answer",
        "model:path": "demo-strong",
        "agent_id": "none",
        "session_id": uuid7(now),
        "key": "none",
    }
    return Place(slug, place.id or 0, things)


def _token(name: str) -> Any:
    from sqlmodel import select

    return select(ApiToken.id).where(ApiToken.name == name)


async def somebody(service: Service, place: Place, role: str) -> httpx.AsyncClient:
    """A person of that role in the workspace, signed in."""

    def make(session: Session) -> User:
        name = f"{role} of {place.slug}"
        user = User(
            issuer="https://id.example", subject=uuid7(START), email=f"{role}@example.com", name=name, created_at=START
        )
        session.add(user)
        session.flush()
        session.add(Membership(user_id=user.id or 0, workspace_id=place.id, role=role, created_at=START))
        return user

    with acting_as(None):
        user = await service.services.db.write(make)
        cookie = await service.services.accounts.sessions.begin(user, None, agent="test", address="127.0.0.1")
    return httpx.AsyncClient(base_url=service.url, cookies={"benchyard_session": cookie}, headers=SAME, timeout=60)


async def two_workspaces(service: Service) -> World:
    db = service.services.db
    alpha = await db.write(lambda s: fill(s, "alpha", 101))
    beta = await db.write(lambda s: fill(s, "beta", 102))
    callers = {role: await somebody(service, alpha, role) for role in ROLES}
    owner = {"authorization": f"Bearer {TOKEN}", "x-benchyard-workspace": "alpha"}
    callers["owner"] = httpx.AsyncClient(base_url=service.url, headers=owner, timeout=60)
    made = await service.client.post("/api/tokens", json={"name": "agent", "scope": "agent"})
    agent = {"authorization": f"Bearer {made.json()['token']}"}
    callers["agent"] = httpx.AsyncClient(base_url=service.url, headers=agent, timeout=60)
    callers["anonymous"] = httpx.AsyncClient(base_url=service.url, timeout=60)
    return World(service, alpha, beta, callers)
