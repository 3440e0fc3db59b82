"""REST for alerts: the list, the feed, webhooks, and badges and feeds shared without a token (off by default)."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import Path, Query, Request, Response
from pydantic import Field
from sqlmodel import Session

from orchestrator.alerts import queries
from orchestrator.alerts.alerts import AlertKind
from orchestrator.alerts.feed import atom
from orchestrator.alerts.schemas import (
    AlertDetail,
    AlertOut,
    Badge,
    DeliveryOut,
    MuteChange,
    MuteOut,
    Retried,
    SecretChange,
    WebhookChange,
    WebhookCreate,
    WebhookCreated,
    WebhookOut,
    WebhookTried,
)
from orchestrator.alerts.share_links import SharedResource, ShareLinks, fact_of, workspace_of_key
from orchestrator.alerts.views import alert_detail
from orchestrator.db.workspaces import Actor, set_workspace, workspace_of
from orchestrator.errors import NotFound
from orchestrator.http.context import Context, Services, base_url, caller_of
from orchestrator.http.policy import ADMIN, ANYONE, READ, RUN, SCHEDULE, Policy, Router
from orchestrator.http.schemas import Answer, Limit, Page
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs import queries as run_queries
from orchestrator.schedules import queries as schedule_queries
from orchestrator.schedules.badge import badge_of, svg
from orchestrator.system.identifiers import new_token

router = Router(prefix="/api/alerts", tags=["alerts"])

AlertId = Annotated[int, Path(ge=0, le=2**53)]
MutedModel = Annotated[int, Path(ge=0, le=2**31 - 1)]
WebhookId = Annotated[int, Path(ge=0, le=2**31 - 1)]


@router.get("", policy=Policy(READ))
async def list_alerts(
    context: Context,
    limit: Limit = 50,
    after: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    model_id: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
    kind: AlertKind | None = None,
    acknowledged: bool | None = None,
) -> Page[AlertOut]:
    """Alerts, newest first."""
    rows = await context.db.read(
        lambda s: queries.page(
            s, limit=limit + 1, before=after, model_id=model_id, kind=kind and kind.value, acknowledged=acknowledged
        )
    )
    items = [AlertOut.of(row) for row in rows[:limit]]
    return Page(items=items, next=str(items[-1].id) if len(rows) > limit else None)


@router.get("/mutes", policy=Policy(READ))
async def list_mutes(context: Context) -> Page[MuteOut]:
    """Models whose alerts are sent to nobody for a while."""
    return Page(items=[MuteOut.of(row) for row in await context.alerts.mutes()])


@router.put("/mutes/{model_id}", policy=Policy(SCHEDULE))
async def mute_alerts(model_id: MutedModel, body: MuteChange, context: Context, request: Request) -> MuteOut:
    """Send no alerts of this model for some hours; they are still stored and listed."""
    model = await context.runs.find_model(model_id)
    name = caller_of(request).name
    return MuteOut.of(await context.alerts.mute(model.id or 0, timedelta(hours=body.hours), name))


@router.delete("/mutes/{model_id}", policy=Policy(SCHEDULE), status_code=204)
async def unmute_alerts(model_id: MutedModel, context: Context) -> None:
    """Send alerts of this model again."""
    await context.alerts.unmute(model_id)


@router.post("/{alert_id}/acknowledge", policy=Policy(RUN))
async def acknowledge_alert(alert_id: AlertId, context: Context, request: Request) -> AlertOut:
    """Say that somebody has seen this alert; the first who did stays named."""
    return AlertOut.of(await context.alerts.acknowledge(alert_id, caller_of(request).name))


@router.post("/{alert_id}/reopen", policy=Policy(RUN))
async def reopen_alert(alert_id: AlertId, context: Context) -> AlertOut:
    """Take the acknowledgement back."""
    return AlertOut.of(await context.alerts.acknowledge(alert_id, None))


@router.get("/feed", policy=Policy(READ), response_class=Response)
async def get_feed(context: Context, request: Request, limit: Limit = 50) -> Response:
    """Alerts as an Atom feed."""
    rows = await context.db.read(lambda s: queries.page(s, limit=limit))
    return Response(atom(rows, base_url(context, request), context.clock.now()), media_type="application/atom+xml")


@router.get("/webhooks", policy=Policy(ADMIN))
async def list_webhooks(context: Context) -> Page[WebhookOut]:
    """Webhooks, with the state of their deliveries."""
    now = context.clock.now()
    return Page(items=[WebhookOut.of(row, counts, now) for row, counts in await context.webhooks.listed()])


@router.post("/webhooks", policy=Policy(ADMIN), status_code=201)
async def add_webhook(body: WebhookCreate, context: Context) -> WebhookCreated:
    """Post alerts to an address, signed according to Standard Webhooks. The secret is shown only now."""
    model = None if body.model_id is None else await context.runs.find_model(body.model_id)
    stored = await context.webhooks.add(
        body.url, model.id if model else None, every_failed_run=body.every_failed_run, form=body.format
    )
    return WebhookCreated(**WebhookOut.of(stored, {}, context.clock.now()).model_dump(), secret=stored.secret)


@router.get("/webhooks/{webhook_id}", policy=Policy(ADMIN))
async def get_webhook(webhook_id: WebhookId, context: Context) -> WebhookOut:
    return await _one(webhook_id, context)


@router.patch("/webhooks/{webhook_id}", policy=Policy(ADMIN))
async def change_webhook(webhook_id: WebhookId, body: WebhookChange, context: Context) -> WebhookOut:
    """Choose whether this webhook gets every failed run, or only scheduled ones."""
    await context.webhooks.change(webhook_id, every_failed_run=body.every_failed_run)
    return await _one(webhook_id, context)


@router.delete("/webhooks/{webhook_id}", policy=Policy(ADMIN), status_code=204)
async def remove_webhook(webhook_id: WebhookId, context: Context) -> None:
    """Remove this webhook; its pending deliveries are dropped."""
    await context.webhooks.remove(webhook_id)


@router.post("/webhooks/{webhook_id}/rotate", policy=Policy(ADMIN))
async def rotate_secret(webhook_id: WebhookId, context: Context, body: SecretChange | None = None) -> WebhookCreated:
    """Create a new secret, shown only now. For a while messages carry both signatures, so that none is lost meanwhile."""
    keep_old = timedelta(seconds=(body or SecretChange()).keep_old_s)
    stored = await context.webhooks.rotate(webhook_id, keep_old)
    return WebhookCreated(**(await _one(webhook_id, context)).model_dump(), secret=stored.secret)


@router.post("/webhooks/{webhook_id}/test", policy=Policy(ADMIN))
async def try_webhook(webhook_id: WebhookId, context: Context) -> WebhookTried:
    """Send a message of the type `webhook.test` now, once, and return the result."""
    result = await context.webhooks.test(webhook_id)
    return WebhookTried(delivered=result.error is None, status=result.status, error=result.error)


@router.get("/webhooks/{webhook_id}/deliveries", policy=Policy(ADMIN))
async def list_deliveries(
    webhook_id: WebhookId,
    context: Context,
    limit: Limit = 100,
    after: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    state: Annotated[str | None, Query(pattern="^(pending|delivered|dead)$")] = None,
) -> Page[DeliveryOut]:
    """Deliveries sent or pending, newest first; `dead` ones were given up."""
    rows = await context.webhooks.deliveries(webhook_id, state=state, limit=limit + 1, before=after)
    items = [DeliveryOut.of(row, alert) for row, alert in rows[:limit]]
    return Page(items=items, next=str(items[-1].alert_id) if len(rows) > limit else None)


@router.post("/webhooks/{webhook_id}/deliveries/retry", policy=Policy(ADMIN), status_code=202)
async def retry_dead(webhook_id: WebhookId, context: Context) -> Retried:
    """Send all deliveries again that were given up."""
    return Retried(retried=await context.webhooks.retry_dead(webhook_id))


@router.post("/webhooks/{webhook_id}/deliveries/{alert_id}/retry", policy=Policy(ADMIN), status_code=202)
async def retry_delivery(
    webhook_id: WebhookId, alert_id: Annotated[int, Path(ge=0, le=2**53)], context: Context
) -> DeliveryOut:
    """Send an alert again that was given up or delivered."""
    return DeliveryOut.of(*await context.webhooks.retry(webhook_id, alert_id))


@router.get("/{alert_id}", policy=Policy(READ))
async def get_alert(alert_id: Annotated[int, Path(ge=0, le=2**53)], context: Context) -> AlertDetail:
    """An alert with what changed: the problems that flipped, and their items in this run and in the last good one."""
    return await context.db.read(lambda s: alert_detail(s, alert_id))


async def _one(webhook_id: int, context: Services) -> WebhookOut:
    return WebhookOut.of(*await context.webhooks.find(webhook_id), context.clock.now())


share_router = Router(tags=["sharing"])

MANY = 10_000
ALERTS = 50
FRESH = {"cache-control": "max-age=300", "x-robots-tag": "noindex"}
Key = Annotated[str, Path(max_length=100)]
ModelId = Annotated[int, Path(ge=0, le=2**31 - 1)]


class SharedModel(Answer):
    model_id: int
    model: str
    badge_url: str
    badge_svg_url: str
    feed_url: str


class Sharing(Answer):
    """Addresses that work without a token; empty while sharing is off."""

    enabled: bool
    feed_url: str | None = None
    models: list[SharedModel] = Field(default_factory=list)


@share_router.get("/api/share-links", policy=Policy(ADMIN))
async def get_share_links(context: Context, request: Request) -> Sharing:
    """The addresses of badges and feeds that work without a token, for every model with a schedule."""
    return await context.db.read(lambda s: _sharing(s, base_url(context, request)))


@share_router.post("/api/share-links", policy=Policy(ADMIN))
async def make_share_links(context: Context, request: Request) -> Sharing:
    """Share badges and feeds at addresses that cannot be guessed. If they are already shared, all get new addresses."""
    value = new_token()

    def change(session: Session) -> Sharing:
        queries.replace_share_secret(session, fact_of(workspace_of(session)), value)
        return _sharing(session, base_url(context, request))

    return await context.db.write(change)


@share_router.delete("/api/share-links", policy=Policy(ADMIN), status_code=204)
async def remove_share_links(context: Context) -> None:
    """Stop sharing: every address stops working at once."""
    await context.db.write(lambda s: queries.replace_share_secret(s, fact_of(workspace_of(s)), None))


@share_router.get("/shared/badges/{model_id}/{key}.svg", policy=Policy(ANYONE), response_class=Response)
async def get_shared_badge_image(model_id: ModelId, key: Key, context: Context) -> Response:
    """A model's badge as an image."""
    badge = await context.db.read(lambda s: read_badge(s, _shared_model(s, key, SharedResource.BADGE, model_id)))
    return Response(svg(badge.label, badge.message, badge.color), media_type="image/svg+xml", headers=FRESH)


@share_router.get("/shared/badges/{model_id}/{key}", policy=Policy(ANYONE))
async def get_shared_badge(model_id: ModelId, key: Key, context: Context, response: Response) -> Badge:
    """A model's badge in the form that shields.io reads from an endpoint."""
    response.headers.update(FRESH)
    return await context.db.read(lambda s: read_badge(s, _shared_model(s, key, SharedResource.BADGE, model_id)))


@share_router.get("/shared/feeds/{model_id}/{key}", policy=Policy(ANYONE), response_class=Response)
async def get_shared_feed_of_model(model_id: ModelId, key: Key, context: Context, request: Request) -> Response:
    """The alerts of a model as an Atom feed."""
    return await context.db.read(lambda s: _feed(s, context, request, _shared_model(s, key, SharedResource.FEED, model_id)))


@share_router.get("/shared/feed/{key}", policy=Policy(ANYONE), response_class=Response)
async def get_shared_feed(key: Key, context: Context, request: Request) -> Response:
    """All alerts as an Atom feed."""

    def read(session: Session) -> Response:
        if not _links(session, key).opens(key, SharedResource.ALL_ALERTS):
            raise _not_shared()
        return _feed(session, context, request, None)

    return await context.db.read(read)


def read_badge(session: Session, model: LlmModel) -> Badge:
    """The badge for the newest judged run of a model."""
    judged = schedule_queries.newest_look(session, model.id or 0)
    run = run_queries.get(session, judged.run_id) if judged and judged.run_id else None
    return Badge(**badge_of(model.slug, run.score if run else None, judged.verdict if judged else None))


def _sharing(session: Session, base: str) -> Sharing:
    workspace_id = workspace_of(session)
    value = queries.share_secret(session, fact_of(workspace_id))
    if value is None:
        return Sharing(enabled=False)
    links = ShareLinks(value, workspace_id)
    models = []
    for schedule, model in schedule_queries.page(session, limit=MANY):
        badge = base + links.path(SharedResource.BADGE, schedule.model_id)
        feed = base + links.path(SharedResource.FEED, schedule.model_id)
        models.append(
            SharedModel(
                model_id=schedule.model_id, model=model.slug, badge_url=badge, badge_svg_url=f"{badge}.svg", feed_url=feed
            )
        )
    return Sharing(enabled=True, feed_url=base + links.path(SharedResource.ALL_ALERTS), models=models)


def _shared_model(session: Session, key: str, resource: SharedResource, model_id: int) -> LlmModel:
    model = model_queries.get(session, model_id) if _links(session, key).opens(key, resource, model_id) else None
    if model is None:
        raise _not_shared()
    return model


def _links(session: Session, key: str) -> ShareLinks:
    """The links of the key's workspace; limits the session to that workspace."""
    workspace_id = workspace_of_key(key)
    set_workspace(session, Actor(workspace_id))
    value = queries.share_secret(session, fact_of(workspace_id))
    if value is None:
        raise _not_shared()
    return ShareLinks(value, workspace_id)


def _feed(session: Session, context: Services, request: Request, model: LlmModel | None) -> Response:
    rows = queries.page(session, limit=ALERTS, model_id=model.id if model else None)
    base = base_url(context, request)
    self_url = f"{base}{request.url.path}"
    title = f"Benchyard alerts: {model.slug}" if model else "Benchyard alerts"
    content = atom(rows, base, context.clock.now(), self_url=self_url, title=title)
    return Response(content, media_type="application/atom+xml", headers=FRESH)


def _not_shared() -> NotFound:
    return NotFound("nothing is shared at this address (any more); ask whoever sent you the address for the new one")
