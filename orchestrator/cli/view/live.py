"""Shows runs until they end: progress bars on a terminal, a line per change elsewhere. The state of a view is pure."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from orchestrator.cli.api.client import Client
from orchestrator.cli.api.stream import TERMINAL, Followers, StreamEnd, StreamEvent
from orchestrator.cli.errors import CliError
from orchestrator.cli.view.output import Output
from orchestrator.cli.view.runs import subject
from orchestrator.cli.view.text import clean

ASK_WHY_S = 3.0


@dataclass(frozen=True)
class RunView:
    """The state of a run according to its events."""

    run_id: str
    model: str
    total: int
    status: str = "pending"
    stage: str = ""
    done: int = 0
    passed: int = 0
    attempt: int = 0
    note: str = ""

    @classmethod
    def of(cls, run: dict[str, Any]) -> RunView:
        return cls(
            run_id=str(run["id"]),
            model=clean(subject(run)),
            total=int(run["progress"]["total"]),
            done=int(run["progress"]["done"]),
            passed=int(run["passed"]),
        )

    def after(self, event: StreamEvent) -> RunView:
        """The view after `event`; events that do not concern the reader leave it unchanged."""
        data = event.data
        if event.type == "transition":
            status = str(data.get("status", self.status))
            why = data.get("message") or data.get("reason") or ""
            live = status in ("starting", "running")
            note = "" if live or status == "completed" else clean(why)
            if data.get("desired") == "cancel" and live:
                note = "is being cancelled"
            return replace(self, status=status, stage="", attempt=int(data.get("attempt") or 0), note=note)
        if event.type == "stage":
            return replace(self, stage=clean(data.get("stage", "")))
        if event.type == "progress":
            done, passed, total = (int(data.get(name, getattr(self, name))) for name in ("done", "passed", "total"))
            return replace(self, done=done, passed=passed, total=total, note="")
        if event.type == "heartbeat":
            return replace(self, note=clean(data.get("waiting_for") or ""))
        return self

    @property
    def word(self) -> str:
        """Its stage or status, in a few words."""
        where = self.stage if self.status == "running" and self.stage not in ("", "running", "finished") else self.status
        again = f" (attempt {self.attempt})" if self.attempt > 1 else ""
        return f"{where}{again}"


class Watcher(Protocol):
    def update(self, before: RunView, after: RunView) -> None: ...


class Lines:
    """One line per change of status, none for progress."""

    def __init__(self, out: Output) -> None:
        self._out = out

    def update(self, before: RunView, after: RunView) -> None:
        if after.status != before.status or after.attempt != before.attempt:
            why = f": {after.note}" if after.note else ""
            self._out.note(f"{after.model} {after.run_id} {after.word}{why}")


class Bars:
    """One bar per run."""

    def __init__(self, progress: Progress, views: list[RunView]) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {
            view.run_id: progress.add_task(view.model, total=view.total, passed=0, word=view.word, note="") for view in views
        }

    def update(self, before: RunView, after: RunView) -> None:
        task = self._tasks[after.run_id]
        self._progress.update(
            task, completed=after.done, total=after.total, passed=after.passed, word=after.word, note=after.note
        )
        if after.status in TERMINAL:
            self._progress.stop_task(task)


def bars(out: Output) -> Progress:
    def text(template: str, style: str = "none", column: Column | None = None) -> TextColumn:
        return TextColumn(template, style=style, markup=False, table_column=column)

    return Progress(
        text("{task.description}", "bold"),
        BarColumn(bar_width=28),
        text("{task.completed:.0f}/{task.total:.0f}"),
        text("{task.fields[passed]} passed", "green"),
        text("{task.fields[word]}", "cyan"),
        TimeElapsedColumn(),
        text("{task.fields[note]}", "dim", Column(no_wrap=True, overflow="ellipsis")),
        console=out.errors,
        transient=True,
    )


def watch(
    client: Client,
    out: Output,
    run_ids: list[str],
    *,
    connect: Callable[[], Client],
    monotonic: Callable[[], float] = time.monotonic,
) -> list[dict[str, Any]]:
    """Shows the runs until all have ended; returns them in the given order."""
    views = {run_id: RunView.of(client.run(run_id)) for run_id in run_ids}
    if out.interactive:
        with bars(out) as progress:
            _watch(client, views, Bars(progress, list(views.values())), connect, monotonic, ask_why=True)
    else:
        _watch(client, views, Lines(out), connect, monotonic, ask_why=False)
    return [client.run(run_id) for run_id in run_ids]


def _watch(
    client: Client,
    views: dict[str, RunView],
    watcher: Watcher,
    connect: Callable[[], Client],
    monotonic: Callable[[], float],
    *,
    ask_why: bool,
) -> None:
    followers = Followers(connect, views)
    open_runs = set(views)
    asked_at = monotonic()

    def change(after: RunView) -> None:
        before, views[after.run_id] = views[after.run_id], after
        if before != after:
            watcher.update(before, after)

    while open_runs:
        if (arrival := followers.take(0.5)) is not None:
            run_id, event = arrival
            if isinstance(event, StreamEnd):
                open_runs.discard(run_id)
                if event.error is not None:
                    raise event.error
            else:
                change(views[run_id].after(event))
        waiting = [view for view in views.values() if view.status == "pending"]
        if ask_why and waiting and monotonic() - asked_at > ASK_WHY_S:
            asked_at = monotonic()
            for run_id, why in _reasons(client).items():
                if run_id in views and views[run_id].status == "pending":
                    change(replace(views[run_id], note=why))


def _reasons(client: Client) -> dict[str, str]:
    """Why runs wait; empty if the service does not answer, since following continues anyway."""
    try:
        return {str(row["run_id"]): clean(row["why"]) for row in client.get("/api/fleet")["waiting"]}
    except CliError:
        return {}
