"""Shows a batch while it goes on: a table by instance type on a terminal, a line per change elsewhere. Tables are pure."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from orchestrator.cli.api.client import Client
from orchestrator.cli.errors import NotReachable
from orchestrator.cli.view.output import STATUS_STYLES, Output, facts, status_text, table
from orchestrator.cli.view.text import ago, clean, cost_of, interval, percent

OVER = frozenset({"completed", "ended", "cancelled", "failed", "incomplete"})
ORDER = ("completed", "running", "starting", "pending", "failed", "cancelled")
POLL_S = 1.0

Batch = dict[str, Any]


def members(batch: Batch) -> list[dict[str, Any]]:
    return [
        {**each, "instance_type": group["instance_type"], "machine": _machine(batch, group)}
        for group in batch["instance_types"]
        for each in group["members"]
    ]


def _machine(batch: Batch, group: dict[str, Any]) -> str:
    """The instance type, with the provider where the batch has several."""
    several = len({each.get("provider") for each in batch["instance_types"]}) > 1
    name = str(group["instance_type"])
    return f"{name} on {group.get('provider') or 'any machine'}" if several else name


def counts_text(counts: dict[str, int]) -> Text:
    words = [(f"{counts[name]} {name}", STATUS_STYLES[name]) for name in ORDER if counts.get(name)]
    return Text(", ").join(Text(word, style) for word, style in words)


def batch_table(batch: Batch, now: datetime) -> RenderableType:
    """One line per instance type."""
    rows = [
        (
            _machine(batch, group),
            status_text(group["state"]),
            counts_text(group["counts"]),
            f"{group['progress']['done']}/{group['progress']['total']}",
            sum(each["passed"] for each in group["members"]),
            ago(group["last_heartbeat"], now),
            _current(group["current"]),
        )
        for group in batch["instance_types"]
    ]
    columns = ("Instance type", "State", "Runs", "Items", "Passed", "Heard of", "Works on")
    name = f" ({clean(batch['name'])})" if batch["name"] else ""
    title = f"Batch {batch['external_id']}{name}: "
    head = Text.assemble((title, "bold"), status_text(batch["state"]), f", {cost_of(batch)}")
    return Group(head, table(columns, rows, right=("Items", "Passed")))


def batch_detail(batch: Batch, now: datetime) -> RenderableType:
    """The same, with every member."""
    commands = any(each["kind"] == "command" for each in members(batch))
    rows = [
        (
            each["machine"],
            each["image"] or each["model"],
            each["benchmark"],
            each["run_id"],
            status_text(each["status"]),
            f"{each['progress']['done']}/{each['progress']['total']}",
            each["passed"] if commands else percent(each["score"]["estimate"]) if each["score"] else "–",
            (each["archive"] or {}).get("state") or "–",
            clean(each["waiting_for"] or each["error_message"] or ""),
        )
        for each in members(batch)
    ]
    last = "Passed" if commands else "Score"
    columns = (
        "Instance type",
        "Image" if commands else "Model",
        "Benchmark",
        "Run",
        "Status",
        "Items",
        last,
        "Archive",
        "Why",
    )
    about = facts(
        (
            ("Id", batch["id"]),
            ("Created", batch["created_at"]),
            ("Ended early", batch["end_mode"] and f"{batch['end_asked_at']} ({batch['end_mode']})"),
        )
    )
    return Group(batch_table(batch, now), about, "", table(columns, rows, right=("Items", last)))


def matrix_table(matrix: dict[str, Any]) -> RenderableType:
    """Scores by machine, and what depends on it."""
    rows = [
        (
            cell["model"],
            cell["benchmark"],
            cell["instance_type"],
            cell["runs"],
            percent(cell["score"]["estimate"]) if cell["score"] else "–",
            interval(cell["score"]) if cell["score"] else "–",
        )
        for cell in sorted(matrix["cells"], key=lambda cell: (cell["model"] or "", cell["benchmark"]))
    ]
    columns = ("Model", "Benchmark", "Instance type", "Runs", "Score", "95 % interval")
    return Group(table(columns, rows, right=("Runs", "Score")), "", Text("\n".join(matrix_sentences(matrix))))


def matrix_sentences(matrix: dict[str, Any]) -> list[str]:
    said = []
    if matrix["compared"]:
        said.append(
            f"{matrix['flips']} of {matrix['compared']} items with the same answer pass on one instance type "
            "and fail on another."
        )
    elif len(matrix["instance_types"]) > 1:
        said.append("No item has the same answer on two instance types: nothing can be said about the machines.")
    if matrix["fragile_problems"]:
        some = ", ".join(map(clean, matrix["fragile_problems"][:10]))
        more = f" and {len(matrix['fragile_problems']) - 10} more" if len(matrix["fragile_problems"]) > 10 else ""
        said.append(f"Fragile: {some}{more}.")
    if matrix["varied"]:
        said.append(f"{matrix['varied']} of {matrix['items']} items got different answers: the model varies.")
    return said


def _current(current: dict[str, Any] | None) -> str:
    return f"{clean(current['benchmark'])}/{clean(current['problem_id'])}" if current else "–"


class Follower:
    """Asks for a batch until it is over. A service that does not answer for a while is waited for."""

    def __init__(
        self,
        client: Client,
        out: Output,
        batch_id: str,
        *,
        now: Callable[[], datetime],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client, self._out, self._batch_id = client, out, batch_id
        self._now, self._sleep = now, sleep
        self._known: dict[str, str] = {}
        self._away = False

    def until_over(self) -> Batch:
        if not self._out.interactive:
            return self._follow(self._lines)
        with Live(console=self._out.errors, transient=True, auto_refresh=False) as live:
            return self._follow(lambda batch: live.update(batch_table(batch, self._now()), refresh=True))

    def _follow(self, show: Callable[[Batch], None]) -> Batch:
        while True:
            batch = self._ask()
            if batch is not None:
                show(batch)
                if batch["state"] in OVER:
                    return batch
            self._sleep(POLL_S)

    def _ask(self) -> Batch | None:
        try:
            batch = self._client.batch(self._batch_id)
        except NotReachable as error:
            if not self._away:
                self._out.warn(f"{error} The batch goes on; this waits for an answer.")
            self._away = True
            return None
        self._away = False
        return batch

    def _lines(self, batch: Batch) -> None:
        for each in members(batch):
            if self._known.get(each["run_id"], "pending") != each["status"]:
                why = f": {clean(each['error_message'])}" if each["error_message"] else ""
                words = (
                    each["machine"],
                    each["image"] or each["model"],
                    each["benchmark"],
                    each["run_id"],
                    each["status"],
                )
                self._out.note(f"{' '.join(map(clean, words))}{why}")
            self._known[each["run_id"]] = each["status"]
