"""Changes of the name, the tags and the note of runs, whatever their state. Each commits before it returns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.errors import Invalid, NotFound
from orchestrator.runs import queries as run_queries
from orchestrator.runs.labels.labels import checked_tags
from orchestrator.runs.tables import ContainerRun

Change = Callable[[ContainerRun], None]


async def change_labels(db: Database, run_id: str, fields: dict[str, Any]) -> None:
    """`fields` has new values of `name`, `tags` and `note`; empty ones take them away."""

    def change(run: ContainerRun) -> None:
        for name, value in fields.items():
            setattr(run, name, list(value or []) if name == "tags" else value or None)

    await _change(db, [run_id], change)


async def retag(db: Database, run_ids: Sequence[str], *, add: Collection[str] = (), remove: Collection[str] = ()) -> None:
    """Add tags to runs and take others away. Raises `Invalid` if a run would have too many; then none is changed."""

    def change(run: ContainerRun) -> None:
        try:
            run.tags = list(checked_tags([tag for tag in [*run.tags, *add] if tag not in remove]))
        except ValueError as error:
            raise Invalid(f"tags: {error}") from None

    await _change(db, run_ids, change)


async def _change(db: Database, run_ids: Sequence[str], change: Change) -> None:
    def work(session: Session) -> None:
        for run_id in run_ids:
            run = run_queries.lock(session, run_id)
            if run is None:
                raise NotFound(f"there is no run {run_id!r}; GET /api/container-runs lists the existing ones")
            change(run)
            session.add(run)

    await db.write(work)
