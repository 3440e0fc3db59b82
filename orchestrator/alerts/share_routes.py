"""REST for what is seen without a token: badges and feeds at addresses that cannot be guessed. Off until asked for."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Request, Response
from pydantic import Field
from sqlmodel import Session

from orchestrator.alerts import queries as schedule_alert_queries
from orchestrator.alerts import share_queries as schedule_share_queries
from orchestrator.alerts.feed import atom
from orchestrator.alerts.schemas import Badge
from orchestrator.alerts.share_links import ShareLinks, Shown, fact_of, workspace_of_key
from orchestrator.db.workspaces import Actor, set_workspace, workspace_of
from orchestrator.errors import NotFound
from orchestrator.http.context import Context, Services, base_url
from orchestrator.http.policy import ADMIN, ANYONE, Policy, Router
from orchestrator.http.schemas import Answer
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs import queries as run_queries
from orchestrator.schedules import queries as schedule_queries
from orchestrator.schedules.badge import badge_of, svg
from orchestrator.system.identifiers import new_token

router = Router(tags=["sharing"])

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
    """Addresses that work without a token; none while it is off."""

    enabled: bool
    feed_url: str | None = None
    models: list[SharedModel] = Field(default_factory=list)


@router.get("/api/share-links", policy=Policy(ADMIN))
async def get_share_links(context: Context, request: Request) -> Sharing:
    """The addresses of badges and feeds that work without a token, for every model with a schedule."""
    return await context.db.read(lambda s: _sharing(s, base_url(context, request)))


@router.post("/api/share-links", policy=Policy(ADMIN))
async def make_share_links(context: Context, request: Request) -> Sharing:
    """Share badges and feeds at addresses that cannot be guessed; if they were shared, all get new addresses."""
    value = new_token()

    def change(session: Session) -> Sharing:
        schedule_share_queries.replace_secret(session, fact_of(workspace_of(session)), value)
        return _sharing(session, base_url(context, request))

    return await context.db.write(change)


@router.delete("/api/share-links", policy=Policy(ADMIN), status_code=204)
async def remove_share_links(context: Context) -> None:
    """Share nothing any more: every address ends at once."""
    await context.db.write(lambda s: schedule_share_queries.replace_secret(s, fact_of(workspace_of(s)), None))


@router.get("/shared/badges/{model_id}/{key}.svg", policy=Policy(ANYONE), response_class=Response)
async def get_shared_badge_image(model_id: ModelId, key: Key, context: Context) -> Response:
    """A model's badge as an image."""
    badge = await context.db.read(lambda s: read_badge(s, _opened(s, key, Shown.BADGE, model_id)))
    return Response(svg(badge.label, badge.message, badge.color), media_type="image/svg+xml", headers=FRESH)


@router.get("/shared/badges/{model_id}/{key}", policy=Policy(ANYONE))
async def get_shared_badge(model_id: ModelId, key: Key, context: Context, response: Response) -> Badge:
    """A model's badge in the form that shields.io reads from an endpoint."""
    response.headers.update(FRESH)
    return await context.db.read(lambda s: read_badge(s, _opened(s, key, Shown.BADGE, model_id)))


@router.get("/shared/feeds/{model_id}/{key}", policy=Policy(ANYONE), response_class=Response)
async def get_shared_feed_of_model(model_id: ModelId, key: Key, context: Context, request: Request) -> Response:
    """The alerts of a model as an Atom feed."""
    return await context.db.read(lambda s: _feed(s, context, request, _opened(s, key, Shown.FEED, model_id)))


@router.get("/shared/feed/{key}", policy=Policy(ANYONE), response_class=Response)
async def get_shared_feed(key: Key, context: Context, request: Request) -> Response:
    """All alerts as an Atom feed."""

    def read(session: Session) -> Response:
        if not _links(session, key).opens(key, Shown.ALL_ALERTS):
            raise _nothing_here()
        return _feed(session, context, request, None)

    return await context.db.read(read)


def read_badge(session: Session, model: LlmModel) -> Badge:
    """The newest judged run of a model."""
    judged = schedule_queries.newest_look(session, model.id or 0)
    run = run_queries.get(session, judged.run_id) if judged and judged.run_id else None
    return Badge(**badge_of(model.slug, run.score if run else None, judged.verdict if judged else None))


def _sharing(session: Session, base: str) -> Sharing:
    workspace_id = workspace_of(session)
    value = schedule_share_queries.secret(session, fact_of(workspace_id))
    if value is None:
        return Sharing(enabled=False)
    links = ShareLinks(value, workspace_id)
    models = []
    for schedule, model in schedule_queries.page(session, limit=MANY):
        badge = base + links.path(Shown.BADGE, schedule.model_id)
        feed = base + links.path(Shown.FEED, schedule.model_id)
        models.append(
            SharedModel(
                model_id=schedule.model_id, model=model.slug, badge_url=badge, badge_svg_url=f"{badge}.svg", feed_url=feed
            )
        )
    return Sharing(enabled=True, feed_url=base + links.path(Shown.ALL_ALERTS), models=models)


def _opened(session: Session, key: str, shown: Shown, model_id: int) -> LlmModel:
    model = model_queries.get(session, model_id) if _links(session, key).opens(key, shown, model_id) else None
    if model is None:
        raise _nothing_here()
    return model


def _links(session: Session, key: str) -> ShareLinks:
    """Of the workspace that the key is for; the session keeps to it."""
    workspace_id = workspace_of_key(key)
    set_workspace(session, Actor(workspace_id))
    value = schedule_share_queries.secret(session, fact_of(workspace_id))
    if value is None:
        raise _nothing_here()
    return ShareLinks(value, workspace_id)


def _feed(session: Session, context: Services, request: Request, model: LlmModel | None) -> Response:
    rows = schedule_alert_queries.page(session, limit=ALERTS, model_id=model.id if model else None)
    base = base_url(context, request)
    own = f"{base}{request.url.path}"
    title = f"Benchyard alerts: {model.slug}" if model else "Benchyard alerts"
    content = atom(rows, base, context.clock.now(), own=own, title=title)
    return Response(content, media_type="application/atom+xml", headers=FRESH)


def _nothing_here() -> NotFound:
    return NotFound("nothing is shared at this address, or not any more; ask who gave it to you for the new one")
