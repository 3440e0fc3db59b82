"""Shows a batch until it ends: a table by instance type on a terminal, a line per change elsewhere. Tables are pure."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from orchestrator.cli.errors import NotReachable
from orchestrator.cli.view.output import STATUS_STYLES, Columns, Output, facts, records_table, status_text
from orchestrator.cli.view.text import ago, clean, cost_of, estimate, interval

OVER = frozenset({"completed", "ended", "cancelled", "failed", "incomplete"})
ORDER = ("completed", "running", "starting", "pending", "failed", "cancelled")
POLL_S = 1.0

Batch = dict[str, Any]


def members(batch: Batch) -> list[dict[str, Any]]:
    return [
        {**member, "instance_type": group["instance_type"], "machine": _machine(batch, group)}
        for group in batch["instance_types"]
        for member in group["members"]
    ]


def _machine(batch: Batch, group: dict[str, Any]) -> str:
    """The instance type, with the provider if the batch has several."""
    several = len({other.get("provider") for other in batch["instance_types"]}) > 1
    name = str(group["instance_type"])
    return f"{name} on {group.get('provider') or 'any machine'}" if several else name


def counts_text(counts: dict[str, int]) -> Text:
    words = [(f"{counts[name]} {name}", STATUS_STYLES[name]) for name in ORDER if counts.get(name)]
    return Text(", ").join(Text(word, style) for word, style in words)


def batch_table(batch: Batch, now: datetime) -> RenderableType:
    """One line per instance type."""
    columns: Columns = {
        "Instance type": lambda group: _machine(batch, group),
        "State": lambda group: status_text(group["state"]),
        "Runs": lambda group: counts_text(group["counts"]),
        "Items": lambda group: f"{group['progress']['done']}/{group['progress']['total']}",
        "Passed": lambda group: sum(member["passed"] for member in group["members"]),
        "Heartbeat": lambda group: ago(group["last_heartbeat"], now),
        "Works on": lambda group: _current(group["current"]),
    }
    name = f" ({clean(batch['name'])})" if batch["name"] else ""
    title = f"Batch {batch['external_id']}{name}: "
    head = Text.assemble((title, "bold"), status_text(batch["state"]), f", {cost_of(batch)}")
    return Group(head, records_table(batch["instance_types"], columns, right=("Items", "Passed")))


def batch_detail(batch: Batch, now: datetime) -> RenderableType:
    """The same, with every member."""
    runs = members(batch)
    commands = any(run["kind"] == "command" for run in runs)
    columns: Columns = {
        "Instance type": "machine",
        "Image" if commands else "Model": lambda run: run["image"] or run["model"],
        "Benchmark": "benchmark",
        "Run": "run_id",
        "Status": lambda run: status_text(run["status"]),
        "Items": lambda run: f"{run['progress']['done']}/{run['progress']['total']}",
        **({"Passed": "passed"} if commands else {"Score": lambda run: estimate(run["score"])}),
        "Archive": lambda run: (run["archive"] or {}).get("state") or "–",
        "Why": lambda run: run["waiting_for"] or run["error_message"] or "",
    }
    description = facts(
        (
            ("Id", batch["id"]),
            ("Created", batch["created_at"]),
            ("Ended early", batch["end_mode"] and f"{batch['end_asked_at']} ({batch['end_mode']})"),
        )
    )
    return Group(batch_table(batch, now), description, "", records_table(runs, columns, right=("Items", "Passed", "Score")))


def matrix_table(matrix: dict[str, Any]) -> RenderableType:
    """Scores by machine, and whether verdicts depend on the machine."""
    columns: Columns = {
        "Model": "model",
        "Benchmark": "benchmark",
        "Instance type": "instance_type",
        "Runs": "runs",
        "Score": lambda cell: estimate(cell["score"]),
        "95 % interval": lambda cell: interval(cell["score"]),
    }
    cells = sorted(matrix["cells"], key=lambda cell: (cell["model"] or "", cell["benchmark"]))
    return Group(records_table(cells, columns, right=("Runs", "Score")), "", Text("\n".join(matrix_sentences(matrix))))


def matrix_sentences(matrix: dict[str, Any]) -> list[str]:
    sentences = []
    if matrix["compared"]:
        sentences.append(
            f"{matrix['flips']} of {matrix['compared']} items with the same answer pass on one instance type "
            "and fail on another."
        )
    elif len(matrix["instance_types"]) > 1:
        sentences.append("No item has the same answer on two instance types: the machines cannot be compared.")
    if matrix["fragile_problems"]:
        some = ", ".join(map(clean, matrix["fragile_problems"][:10]))
        more = f" and {len(matrix['fragile_problems']) - 10} more" if len(matrix["fragile_problems"]) > 10 else ""
        sentences.append(f"Fragile: {some}{more}.")
    if matrix["varied"]:
        sentences.append(f"{matrix['varied']} of {matrix['items']} items got different answers: the model varies.")
    return sentences


def _current(current: dict[str, Any] | None) -> str:
    return f"{clean(current['benchmark'])}/{clean(current['problem_id'])}" if current else "–"


class Follower:
    """Reads a batch until it ends, and waits while the service is unreachable."""

    def __init__(
        self,
        read: Callable[[], Batch],
        out: Output,
        *,
        now: Callable[[], datetime],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._read, self._out = read, out
        self._now, self._sleep = now, sleep
        self._statuses: dict[str, str] = {}
        self._unreachable = False

    def until_over(self) -> Batch:
        if not self._out.interactive:
            return self._follow(self._lines)
        with Live(console=self._out.errors, transient=True, auto_refresh=False) as live:
            return self._follow(lambda batch: live.update(batch_table(batch, self._now()), refresh=True))

    def _follow(self, show: Callable[[Batch], None]) -> Batch:
        while True:
            batch = self._try_to_read()
            if batch is not None:
                show(batch)
                if batch["state"] in OVER:
                    return batch
            self._sleep(POLL_S)

    def _try_to_read(self) -> Batch | None:
        try:
            batch = self._read()
        except NotReachable as error:
            if not self._unreachable:
                self._out.warn(f"{error} The batch continues; this command waits for an answer.")
            self._unreachable = True
            return None
        self._unreachable = False
        return batch

    def _lines(self, batch: Batch) -> None:
        for run in members(batch):
            if self._statuses.get(run["run_id"], "pending") != run["status"]:
                why = f": {clean(run['error_message'])}" if run["error_message"] else ""
                words = (run["machine"], run["image"] or run["model"], run["benchmark"], run["run_id"], run["status"])
                self._out.note(f"{' '.join(map(clean, words))}{why}")
            self._statuses[run["run_id"]] = run["status"]
