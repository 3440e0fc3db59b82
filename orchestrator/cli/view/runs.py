"""Tables of runs: the list, one run, the result. Pure: converts API responses into renderables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.cli.view.output import Columns, facts, records_table, status_text, table
from orchestrator.cli.view.text import (
    ago,
    clean,
    cost_of,
    estimate,
    interval,
    moment,
    money,
    outcomes_sentence,
    short_ids,
    took,
)

Run = dict[str, Any]


def subject(run: Run) -> str:
    """The subject of a run: the image of a command, otherwise the model; a job without a model is named by its kind."""
    return str(run["model"] or run.get("image") or run["kind"])


def label_words(run: Run) -> str:
    """The name and the tags of a run; an older service knows none."""
    return " ".join(word for word in (run.get("name") or "", *(f"#{tag}" for tag in run.get("tags") or ())) if word)


def _passed(run: Run) -> str:
    if run["kind"] == "command":
        return f"{run['passed']}/{run['progress']['done']}"
    score = run["score"] or {}
    return f"{score.get('passed', 0)}/{score.get('n', 0)}"


def runs_table(runs: Sequence[Run], now: datetime) -> RenderableType:
    if not runs:
        return Text("No runs. Start one: benchyard run --model demo-strong --sample-size 10")
    short = short_ids([str(run["id"]) for run in runs])
    rows: list[tuple[object, ...]] = []
    for run in runs:
        rows.append(
            (
                short[str(run["id"])],
                " ".join(filter(None, (subject(run), label_words(run)))),
                ", ".join(run["benchmarks"]),
                status_text(run["status"]),
                f"{run['progress']['done']}/{run['progress']['total']}",
                _estimate(run),
                interval(run["score"]),
                ago(run["created_at"], now),
            )
        )
        for name, score in _parts(run).items():
            rows.append(("", "", f"  {name}", "", "", estimate(score), interval(score), ""))
    columns = ("Run", "Model", "Benchmark", "Status", "Done", "Score", "95 % interval", "Created")
    return table(columns, rows, right=("Done", "Score", "95 % interval"))


def result_table(runs: Sequence[Run], now: datetime) -> Table:
    """Scores with intervals side by side; for a run with several benchmarks the pooled score, then one per benchmark."""
    rows: list[tuple[object, ...]] = []
    for run in runs:
        rows.append(
            (
                Text(clean(subject(run)), "bold"),
                status_text(run["status"]),
                _estimate(run),
                interval(run["score"]),
                _passed(run),
                outcomes_sentence(run["outcomes"]),
                took(run, now),
                cost_of(run),
            )
        )
        for name, score in _parts(run).items():
            passed = f"{score['passed']}/{score['n']}"
            rows.append((f"  {name}", "", estimate(score), interval(score), passed, "", "", ""))
    columns = ("Model", "Status", "Score", "95 % interval", "Passed", "Outcomes", "Took", "Cost")
    return table(columns, rows, right=("Score", "95 % interval", "Passed", "Took", "Cost"))


def _estimate(run: Run) -> str:
    """A score over several benchmarks is marked as pooled."""
    score = run["score"] or {}
    pooled = score.get("estimate") is not None and score.get("pooled_over", 1) > 1
    return f"{estimate(score)}{' pooled' if pooled else ''}"


def _parts(run: Run) -> dict[str, dict[str, Any]]:
    """The score per benchmark, if there are several."""
    scores: dict[str, dict[str, Any]] = run.get("scores") or {}
    return scores if len(run["benchmarks"]) > 1 else {}


def remarks(run: Run) -> list[str]:
    """Remarks on a result: why it ended early, and what its score excludes."""
    sentences = []
    if run["reason"]:
        sentences.append(reason_sentence(run))
    score = run["score"]
    if score and not score["n"]:
        return [*sentences, f"None of {score['n_all']} finished items counts: there is no score."]
    if score and (left_out := score["n_all"] - score["n"]):
        sentences.append(
            f"{left_out} of {score['n_all']} items failed for other reasons than the model and are not in the score; "
            f"counted as failures it would be {estimate(score, 'estimate_all')}."
        )
    if score and not score["comparable"]:
        sentences.append("This score is not comparable: too much is missing from it.")
    return sentences


def reason_sentence(run: Run) -> str:
    general, message = clean(run.get("reason_sentence") or run["reason"] or ""), clean(run.get("error_message") or "")
    return message if general in message else f"{general} {message}".strip()


def run_detail(run: Run, now: datetime) -> RenderableType:
    score = run["score"] or {}
    progress = run["progress"]
    waits = run["waiting_for"] and f"waits: {run['waiting_for']}"
    stage = run["stage"] if run["status"] == "running" else ""
    head = facts(
        (
            ("Run", run["id"]),
            ("Name", label_words(run) or None),
            ("Note", run.get("note")),
            ("Image", run.get("image")),
            ("Model", subject(run) if run["kind"] != "command" else None),
            ("Benchmark", ", ".join(run["benchmarks"])),
            ("Status", Text.assemble(status_text(run["status"]), f" {clean(stage)}" if stage else "")),
            ("Why", " ".join([*remarks(run), clean(waits or "")]).strip()),
            (_score_name(score), _score_text(score) if score else None),
            *((f"  {clean(name)}", _score_text(part)) for name, part in _parts(run).items()),
            ("Progress", f"{progress['done']} of {progress['total']} items, {run['passed']} passed"),
            ("Outcomes", outcomes_sentence(run["outcomes"])),
            ("Sample", None if run["kind"] in ("command", "harness") else _sample(run)),
            ("Problems", None if run["kind"] in ("command", "harness") else _problems(run)),
            ("Instance", f"{run['instance_type']}, {run['concurrency']} items at once"),
            ("Provider", run["provider"]),
            ("Budget", run["budget_usd"] and money(run["budget_usd"])),
            ("Answers", "reuses answers of other runs" if run["reuse_answers"] else None),
            ("Price", "of the provider's batches" if run.get("batch") else None),
            ("Judge", _judges(run)),
            ("Cost", f"{cost_of(run)}, {run['input_tokens']} tokens in, {run['output_tokens']} out"),
            ("Created", f"{_at(run['created_at'])} ({run['trigger_type']}{_author(run)})"),
            ("Started", run["started_at"] and _at(run["started_at"])),
            ("Ended", run["completed_at"] and f"{_at(run['completed_at'])}, took {took(run, now)}"),
            ("Retry of", run["retry_of"]),
            ("Artefacts", ", ".join(artefact["name"] for artefact in run["artefacts"])),
        )
    )
    return Group(head, "", attempts_table(run["attempts"])) if run["attempts"] else head


def _author(run: Run) -> str:
    return f", by {clean(run['author'])}" if run.get("author") else ""


def _judges(run: Run) -> str | None:
    """The models that judge answers, and their part of the cost."""
    slugs = dict.fromkeys(clean(part["judge"]) for part in run.get("plan", ()) if part.get("judge"))
    return f"{', '.join(slugs)}, {money(run['judge_cost_usd'])} of the cost" if slugs else None


def _score_name(score: dict[str, Any]) -> str:
    over = score.get("pooled_over", 1)
    return f"Score, pooled over {over} benchmarks" if over > 1 else "Score"


def _score_text(score: dict[str, Any]) -> str:
    return f"{estimate(score)}   95 % interval {interval(score)}   n = {score['n']}"


def attempts_table(attempts: Sequence[dict[str, Any]]) -> Table:
    columns: Columns = {
        "Attempt": "number",
        "Container": "container_name",
        "Engine": "engine",
        "Started": lambda attempt: _at(attempt["dispatched_at"]),
        "Ended": lambda attempt: _at(attempt["ended_at"]),
        "Exit": lambda attempt: "–" if attempt["exit_code"] is None else attempt["exit_code"],
        "Note": _attempt_end,
    }
    return records_table(attempts, columns)


def _attempt_end(attempt: dict[str, Any]) -> str:
    words = [attempt["reason"] or "", "out of memory" if attempt["oom_killed"] else "", attempt["detail"] or ""]
    return ": ".join(clean(word) for word in words if word)


def _sample(run: Run) -> str:
    share = f" ({run['subset_pct']:g} %)" if run["subset_pct"] else ""
    samples = f", {run['samples_per_problem']} samples each" if run["samples_per_problem"] > 1 else ""
    return f"{run['sample_size']} problems{share}{samples}, seed {run['seed']}"


def _problems(run: Run) -> str:
    """The number of problems of each pack, and their dates."""
    return "; ".join(
        f"{part['count']} of {clean(part['name'])} ({clean(part['pack_digest'])[:19]})"
        + (f", {part['first_date']} to {part['last_date']}" if part.get("first_date") else "")
        + (f", without {part['flagged_excluded']} known to be faulty" if part.get("flagged_excluded") else "")
        for part in run["plan"]
    )


def _at(text: str | None) -> str:
    at = moment(text)
    return at.strftime("%Y-%m-%d %H:%M:%S UTC") if at else "–"
