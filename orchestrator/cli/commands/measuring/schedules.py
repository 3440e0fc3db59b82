"""Commands about schedules: when a model is measured again, on which problems, and the results."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.cli.api.client import Json, given
from orchestrator.cli.commands.measuring.runs import finish, read_span
from orchestrator.cli.context import Command, command, command_group, now
from orchestrator.cli.errors import BadUsage, Refused
from orchestrator.cli.files.preset_body import harness_body
from orchestrator.cli.view.output import Columns, JsonFlag, facts, records_table, table
from orchestrator.cli.view.text import ago, clean, moment, money, short_ids, span

ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="Slug or id of a model.")]
Zone = Annotated[str | None, typer.Option("--tz", metavar="ZONE", help="Europe/Berlin, for example.")]
NOT_FOUND = 404
VERDICT_POLLS, POLL_S = 40, 0.25
VERDICT_STYLES = {"worse": "red", "better": "green", "no_change": "", "not_comparable": "dim"}


def problems_text(schedule: Json) -> str:
    names = ", ".join(schedule["benchmarks"])
    return f"harness {names}" if schedule["harness"] else f"{schedule['sample_size']} of {names}"


COLUMNS: Columns = {
    "Model": "model",
    "Cron": "cron_expression",
    "Meaning": "words",
    "Problems": problems_text,
    "Next": lambda schedule: "paused" if schedule["paused"] else until(schedule["next_fire_at"], now()),
}

schedules_app = command_group(
    "Measure models again and again, and see whether they change: "
    "list (the default), set, show, pause, resume, run, delete, preview, history."
)


def _path(model: str) -> str:
    return f"/api/schedules/{quote(model)}"


@schedules_app.command("list")
def list_schedules(as_json: JsonFlag = False) -> None:
    """List schedules."""
    with command(as_json) as cmd:
        empty = 'No schedules. Create one: benchyard schedules set demo-strong --cron "0 6 * * *" --sample-size 20'
        cmd.out.items(cmd.client.pages("/api/schedules"), COLUMNS, empty=empty)


@schedules_app.command("set")
def set_schedule(
    model: ModelArgument,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENT...]", help="With --harness: arguments for the harness.")
    ] = None,
    cron: Annotated[str | None, typer.Option(metavar="EXPRESSION", help='When: "0 6 * * MON-FRI", or @daily.')] = None,
    sample_size: Annotated[
        int | None, typer.Option("--sample-size", "-n", min=1, help="Problems of each benchmark, drawn once.")
    ] = None,
    benchmark: Annotated[list[str] | None, typer.Option("--benchmark", "-b", help="May be repeated.")] = None,
    harness: Annotated[
        str | None,
        typer.Option(metavar="PRESET|FILE", help="Instead of problems: inspect, lm-eval, or a file with a harness."),
    ] = None,
    task: Annotated[
        str | None, typer.Option(metavar="FILE|NAME", help="With --harness: a file with the task, or a task's name.")
    ] = None,
    file: Annotated[
        list[Path] | None, typer.Option("--file", metavar="PATH", help="With --harness: a further file; may be repeated.")
    ] = None,
    timezone: Zone = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Answers per problem.")] = None,
    instance_type: Annotated[str | None, typer.Option(help="Size of the container.")] = None,
    budget: Annotated[float | None, typer.Option(metavar="USD", help="Maximum cost of each run.")] = None,
    batch: Annotated[
        bool | None, typer.Option("--half-price/--full-price", help="Through the provider's batches, or not.")
    ] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Items worked on at once within a run.")] = None,
    priority: Annotated[int | None, typer.Option(help="Higher starts earlier.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Chooses the problems; another seed, another panel.")] = None,
    draw: Annotated[str | None, typer.Option(metavar="all|informative", help="Which problems are drawn first.")] = None,
    redraw: Annotated[bool, typer.Option("--redraw", help="Draw a new panel, and begin a new series.")] = False,
    misfire: Annotated[str | None, typer.Option(metavar="newest|skip", help="What runs after an outage.")] = None,
    grace: Annotated[str | None, typer.Option(metavar="TIME", help="How late a run may be: 15m, 2h.")] = None,
    overlap: Annotated[str | None, typer.Option(metavar="forbid|allow", help="Whether runs may overlap.")] = None,
    baseline: Annotated[str | None, typer.Option(metavar="rolling|last_good", help="What runs are compared with.")] = None,
    baseline_run: Annotated[str | None, typer.Option(metavar="RUN", help="Compare with this run.")] = None,
    baseline_runs: Annotated[int | None, typer.Option(min=1, help="Runs in a rolling baseline.")] = None,
    alarm_rate: Annotated[
        float | None, typer.Option(help="Maximum rate of false alarms over the whole series; 0.05 is 5 %.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Create a model's schedule, or change the given fields of an existing one."""
    with command(as_json) as cmd:
        body = given(
            cron_expression=cron,
            sample_size=sample_size,
            benchmarks=benchmark or None,
            harness=harness_body(harness, task, file or (), arguments or ()),
            timezone=timezone,
            samples_per_problem=samples,
            instance_type=instance_type,
            budget_usd=budget,
            batch=batch,
            concurrency=concurrency,
            priority=priority,
            seed=seed,
            draw=draw,
            redraw=redraw or None,
            misfire_policy=misfire,
            misfire_grace_s=None if grace is None else read_span(grace, "--grace"),
            overlap=overlap,
            baseline="run" if baseline_run else baseline,
            baseline_run_id=None if baseline_run is None else cmd.client.find_run_id(baseline_run),
            baseline_runs=baseline_runs,
            alarm_rate=alarm_rate,
        )
        if cron is None or (sample_size is None and harness is None):
            body = {**_required_fields(cmd, model, with_size=harness is None), **body}
        saved = cmd.client.post("/api/schedules", {"model_id": model, **body})
        cmd.out.result(saved, lambda: schedule_detail(saved, now()))


def _required_fields(cmd: Command, model: str, *, with_size: bool) -> Json:
    """The fields that the service requires in every request, from the existing schedule. One of a harness has no size."""
    try:
        schedule = cmd.client.get(_path(model))
    except Refused as error:
        if error.status == NOT_FOUND:
            cmd.client.get(f"/api/models/{quote(model)}")  # raises if there is no such model
            needs = "a new one needs --cron and --sample-size or --harness"
            raise BadUsage(f"{clean(model)} has no schedule yet: {needs}.") from None
        raise
    names = ("cron_expression", "sample_size") if with_size and not schedule["harness"] else ("cron_expression",)
    return {name: schedule[name] for name in names}


@schedules_app.command("show")
def show_schedule(model: ModelArgument, as_json: JsonFlag = False) -> None:
    """Show a schedule: times, problems, baseline, and which changes it can detect."""
    with command(as_json) as cmd:
        schedule = cmd.client.get(_path(model))
        cmd.out.result(schedule, lambda: schedule_detail(schedule, now()))


@schedules_app.command("pause")
def pause_schedule(model: ModelArgument, as_json: JsonFlag = False) -> None:
    """Pause a schedule. Fires that are missed meanwhile are recorded but not made up for."""
    with command(as_json) as cmd:
        schedule = cmd.client.patch(f"{_path(model)}/pause", {"paused": True})
        cmd.out.result(schedule, f"The schedule of {clean(schedule['model'])} is paused.")


@schedules_app.command("resume")
def resume_schedule(model: ModelArgument, as_json: JsonFlag = False) -> None:
    """Resume a paused schedule."""
    with command(as_json) as cmd:
        schedule = cmd.client.patch(f"{_path(model)}/pause", {"paused": False})
        cmd.out.result(schedule, lambda: schedule_detail(schedule, now()))


@schedules_app.command("run")
def run_schedule(
    model: ModelArgument,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait: print the id and return.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Run the schedule's panel now, in addition to its plan; the result becomes part of its series."""
    with command(as_json) as cmd:
        run_id = str(cmd.client.post(f"{_path(model)}/run")["run_id"])
        if detach:
            cmd.out.result({"runs": [{"id": run_id, "model": model}]}, run_id)
        else:
            finish(cmd, [run_id])
            _say_verdict(cmd, model, run_id)


def _say_verdict(cmd: Command, model: str, run_id: str) -> None:
    """What the series says of the run, which is judged soon after it has ended."""
    if cmd.out.as_json:
        return
    for _ in range(VERDICT_POLLS):
        for fire in cmd.client.pages(f"{_path(model)}/fires", limit=20):
            if fire["run_id"] == run_id and fire["comparison"]:
                cmd.out.say(clean(fire["comparison"]["sentence"]), VERDICT_STYLES.get(str(fire["verdict"]), ""))
                return
        time.sleep(POLL_S)
    cmd.out.say(f"Not judged yet; later: benchyard schedules history {clean(model)}")


@schedules_app.command("delete")
def delete_schedule(model: ModelArgument, as_json: JsonFlag = False) -> None:
    """Stop measuring a model; runs and history stay."""
    with command(as_json) as cmd:
        cmd.client.delete(_path(model))
        cmd.out.result({"deleted": model}, f"Deleted the schedule of {clean(model)}; its runs stay.")


@schedules_app.command("preview")
def preview_schedule(
    cron: Annotated[str, typer.Argument(metavar="CRON", help='A cron expression in quotes: "0 6 * * MON-FRI".')],
    timezone: Zone = "UTC",
    count: Annotated[int, typer.Option(min=1, max=100, help="How many fires.")] = 5,
    sample_size: Annotated[int, typer.Option("--sample-size", "-n", min=1, help="Problems in the panel.")] = 100,
    samples: Annotated[int, typer.Option(min=1, help="Answers per problem.")] = 1,
    drop: Annotated[
        float | None, typer.Option(metavar="POINTS", min=0.01, max=100, help="How many problems does such a drop need?")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Explain a cron expression: its next fires, and what a schedule of this size can detect. Nothing is stored."""
    with command(as_json) as cmd:
        preview = cmd.client.get(
            "/api/schedules/preview",
            cron=cron,
            tz=timezone,
            count=count,
            sample_size=sample_size,
            samples_per_problem=samples,
            drop=None if drop is None else drop / 100,
        )
        cmd.out.result(preview, lambda: _preview(preview, now()))


@schedules_app.command("history")
def schedule_history(
    model: ModelArgument,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=100_000, help="Maximum number of instants, newest first.")
    ] = 20,
    as_json: JsonFlag = False,
) -> None:
    """Show the outcome of each fire with its verdicts, newest first."""
    with command(as_json) as cmd:
        fires = cmd.client.pages(f"{_path(model)}/fires", limit=limit)
        cmd.out.result({"items": fires}, lambda: _history(fires, now()))


def schedule_detail(schedule: Json, now: datetime) -> RenderableType:
    panel, last = schedule["panel"], schedule["last_fire"]
    baseline = {
        "rolling": f"the {schedule['baseline_runs']} runs before",
        "last_good": "the newest run that was not worse",
        "run": f"run {schedule['baseline_run_id']}",
    }[schedule["baseline"]]
    late = "the newest late instant runs" if schedule["misfire_policy"] == "newest" else "late instants do not run"
    samples, harness = schedule["samples_per_problem"], schedule["harness"]
    size = f", {panel['problems']} problems" if panel and not harness else ""
    fires = ", ".join(f"{instant[:16].replace('T', ' ')} UTC" for instant in schedule["next_fires"][:2])
    next_fires = f"{fires} ({until(schedule['next_fires'][0], now)})" if fires else "–"
    detail = facts(
        (
            ("Model", Text(clean(schedule["model"]), "bold")),
            ("When", f"{schedule['cron_expression']} ({schedule['words']})"),
            ("Next", "paused" if schedule["paused"] else next_fires),
            ("Harness", harness and f"{' '.join(harness['argv'])} in {harness['image']}"),
            ("Panel", panel and f"version {panel['version']}{size}. {panel['how']}"),
            ("Samples", f"{samples} per problem" if samples > 1 else None),
            ("Instance type", schedule["instance_type"]),
            ("Price", "of the provider's batches" if schedule["batch"] else None),
            ("Budget", None if schedule["budget_usd"] is None else f"{money(schedule['budget_usd'])} per run"),
            ("After an outage", f"{late}, up to {span(schedule['misfire_grace_s'])}"),
            ("Overlap", schedule["overlap"]),
            ("Compared with", baseline),
            ("Can detect", schedule["can_see"]["sentence"]),
        )
    )
    return Group(detail, "", Text("Newest:", "dim"), _history([last], now)) if last else detail


def _history(fires: Sequence[Json], now: datetime) -> RenderableType:
    if not fires:
        return Text("Nothing yet: no instant has passed since the schedule was created.")
    short = short_ids([str(fire["run_id"]) for fire in fires if fire["run_id"]])
    columns: Columns = {
        "Instant (UTC)": lambda fire: clean(fire["instant"])[:16].replace("T", " "),
        "": lambda fire: ago(fire["instant"], now),
        "Outcome": lambda fire: fire["outcome"] if fire["cause"] == "cron" else f"{fire['outcome']} ({fire['cause']})",
        "Run": lambda fire: short.get(str(fire["run_id"]), ""),
        "Verdict": lambda fire: Text(clean(fire["verdict"] or ""), VERDICT_STYLES.get(str(fire["verdict"]), "")),
        "What": lambda fire: (fire["comparison"] or {}).get("sentence") or fire["detail"],
    }
    return records_table(fires, columns)


def _preview(preview: Json, now: datetime) -> RenderableType:
    size = preview["size_for"]
    description = facts(
        (
            ("Cron", preview["cron"]),
            ("Meaning", f"{preview['words']}, {preview['tz']} time"),
            ("Can detect", preview["can_see"]["sentence"]),
            ("Needed", size and f"{size['problems']} problems for a drop of {100 * size['drop']:g} points"),
        )
    )
    rows = [
        (local.replace("T", " "), clean(instant)[:16].replace("T", " "), until(instant, now))
        for local, instant in zip(preview["local_times"], preview["next_fires"], strict=True)
    ]
    return Group(description, "", table(("Fires at", "UTC", ""), rows))


def until(text: str | None, now: datetime) -> str:
    """The time until then, in one unit."""
    at = moment(text)
    return "–" if at is None else f"in {span((at - now).total_seconds())}"
