"""Commands about schedules: when a model is measured again, on what, and what came of it."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from orchestrator.cli.commands.runs import raise_for, read_span, say_remarks, wait
from orchestrator.cli.context import Command, command, now
from orchestrator.cli.errors import BadUsage, Refused
from orchestrator.cli.view.output import JsonFlag
from orchestrator.cli.view.runs import result_table
from orchestrator.cli.view.schedules import history_table, preview_detail, schedule_detail, schedules_table
from orchestrator.cli.view.text import clean

ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="Slug or id of a model.")]
NOT_FOUND = 404

schedules_app = typer.Typer(help="Measure models again and again, and see whether they change.", no_args_is_help=False)


@schedules_app.callback(invoke_without_command=True)
def schedules(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Schedules: list (the default), set, show, pause, resume, run, delete, preview, history."""
    if context.invoked_subcommand is None:
        list_schedules(as_json=as_json)


@schedules_app.command("list")
def list_schedules(as_json: JsonFlag = False) -> None:
    """List schedules."""
    with command(as_json) as cmd:
        found = cmd.client.schedules()
        cmd.out.result({"items": found}, lambda: schedules_table(found, now()))


@schedules_app.command("set")
def set_schedule(
    model: ModelArgument,
    cron: Annotated[str | None, typer.Option(metavar="EXPRESSION", help='When: "0 6 * * MON-FRI", or @daily.')] = None,
    sample_size: Annotated[
        int | None, typer.Option("--sample-size", "-n", min=1, help="Problems of each benchmark, drawn once.")
    ] = None,
    benchmark: Annotated[list[str] | None, typer.Option("--benchmark", "-b", help="May be repeated.")] = None,
    timezone: Annotated[str | None, typer.Option("--tz", metavar="ZONE", help="Europe/Berlin, for example.")] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Answers per problem.")] = None,
    instance_type: Annotated[str | None, typer.Option(help="Size of the container.")] = None,
    budget: Annotated[float | None, typer.Option(metavar="USD", help="Each run may cost so much and no more.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Items worked on at once within a run.")] = None,
    priority: Annotated[int | None, typer.Option(help="Higher starts earlier.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Chooses the problems; another seed, another panel.")] = None,
    draw: Annotated[str | None, typer.Option(metavar="all|informative", help="Which problems are drawn first.")] = None,
    redraw: Annotated[bool, typer.Option("--redraw", help="Draw a new panel, and begin a new series.")] = False,
    misfire: Annotated[str | None, typer.Option(metavar="newest|skip", help="What runs after an absence.")] = None,
    grace: Annotated[str | None, typer.Option(metavar="TIME", help="How late a run may be: 15m, 2h.")] = None,
    overlap: Annotated[str | None, typer.Option(metavar="forbid|allow", help="May runs overlap?")] = None,
    baseline: Annotated[str | None, typer.Option(metavar="rolling|last_good", help="What runs are compared with.")] = None,
    baseline_run: Annotated[str | None, typer.Option(metavar="RUN", help="Compare with this run.")] = None,
    baseline_runs: Annotated[int | None, typer.Option(min=1, help="Runs in a rolling baseline.")] = None,
    alarm_rate: Annotated[
        float | None, typer.Option(help="False alarms over the whole series, at most; 0.05 is 5 %.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a model's schedule, or change what is given of it."""
    with command(as_json) as cmd:
        body: dict[str, Any] = {
            "cron_expression": cron,
            "sample_size": sample_size,
            "benchmarks": benchmark or None,
            "timezone": timezone,
            "samples_per_problem": samples,
            "instance_type": instance_type,
            "budget_usd": budget,
            "concurrency": concurrency,
            "priority": priority,
            "seed": seed,
            "draw": draw,
            "redraw": redraw or None,
            "misfire_policy": misfire,
            "misfire_grace_s": None if grace is None else read_span(grace, "--grace"),
            "overlap": overlap,
            "baseline": "run" if baseline_run else baseline,
            "baseline_run_id": None if baseline_run is None else str(cmd.client.find_run(baseline_run)["id"]),
            "baseline_runs": baseline_runs,
            "alarm_rate": alarm_rate,
        }
        given = {key: value for key, value in body.items() if value is not None}
        if cron is None or sample_size is None:
            given = {**_kept(cmd, model), **given}
        saved = cmd.client.save_schedule({"model_id": model, **given})
        cmd.out.result(saved, lambda: schedule_detail(saved, now()))


def _kept(cmd: Command, model: str) -> dict[str, Any]:
    """What the service wants to hear each time, from the schedule that is there."""
    try:
        known = cmd.client.schedule(model)
    except Refused as error:
        if error.status == NOT_FOUND:
            cmd.client.model(model)  # a model that is not there is refused by this
            raise BadUsage(f"{clean(model)} has no schedule yet: a new one needs --cron and --sample-size.") from None
        raise
    return {name: known[name] for name in ("cron_expression", "sample_size")}


@schedules_app.command("show")
def show_schedule(model: ModelArgument, as_json: JsonFlag = False) -> None:
    """Show one schedule: when, on what, compared with what, and what it can see."""
    with command(as_json) as cmd:
        found = cmd.client.schedule(model)
        cmd.out.result(found, lambda: schedule_detail(found, now()))


@schedules_app.command("pause")
def pause_schedule(model: ModelArgument, as_json: JsonFlag = False) -> None:
    """Pause a schedule. What passes meanwhile is recorded and not made up for."""
    with command(as_json) as cmd:
        found = cmd.client.pause_schedule(model, paused=True)
        cmd.out.result(found, lambda: Text(f"The schedule of {clean(found['model'])} is paused."))


@schedules_app.command("resume")
def resume_schedule(model: ModelArgument, as_json: JsonFlag = False) -> None:
    """Let a paused schedule go on."""
    with command(as_json) as cmd:
        found = cmd.client.pause_schedule(model, paused=False)
        cmd.out.result(found, lambda: schedule_detail(found, now()))


@schedules_app.command("run")
def run_schedule(
    model: ModelArgument,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait: print the id and return.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Run the schedule's panel now, beside its plan; the result joins its series."""
    with command(as_json) as cmd:
        run_id = cmd.client.run_schedule(model)
        if detach:
            cmd.out.result({"runs": [{"id": run_id, "model": model}]}, lambda: Text(run_id))
            return
        finished = wait(cmd, [run_id])
        cmd.out.result({"runs": finished}, lambda: result_table(finished, now()))
        say_remarks(cmd, finished)
        raise_for(finished)


@schedules_app.command("delete")
def delete_schedule(model: ModelArgument, as_json: JsonFlag = False) -> None:
    """Stop measuring a model; runs and history stay."""
    with command(as_json) as cmd:
        cmd.client.delete_schedule(model)
        cmd.out.result({"deleted": model}, lambda: Text(f"Deleted the schedule of {clean(model)}; its runs stay."))


@schedules_app.command("preview")
def preview_schedule(
    cron: Annotated[str, typer.Argument(metavar="CRON", help='A cron expression in quotes: "0 6 * * MON-FRI".')],
    timezone: Annotated[str, typer.Option("--tz", metavar="ZONE", help="Europe/Berlin, for example.")] = "UTC",
    count: Annotated[int, typer.Option(min=1, max=100, help="How many fires.")] = 5,
    sample_size: Annotated[int, typer.Option("--sample-size", "-n", min=1, help="Problems in the panel.")] = 100,
    samples: Annotated[int, typer.Option(min=1, help="Answers per problem.")] = 1,
    drop: Annotated[
        float | None, typer.Option(metavar="POINTS", min=0.01, max=100, help="How many problems does such a drop need?")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Say what an expression means, when it fires next, and what a schedule of this size can see. Nothing is stored."""
    query = {"cron": cron, "tz": timezone, "count": count, "sample_size": sample_size, "samples_per_problem": samples}
    with command(as_json) as cmd:
        found = cmd.client.preview_schedule(query | ({} if drop is None else {"drop": drop / 100}))
        cmd.out.result(found, lambda: preview_detail(found, now()))


@schedules_app.command("history")
def schedule_history(
    model: ModelArgument,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most so many, newest first.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """Show what became of each instant, with the verdicts, newest first."""
    with command(as_json) as cmd:
        found = cmd.client.fires(model, limit=limit)
        cmd.out.result({"items": found}, lambda: history_table(found, now()))
