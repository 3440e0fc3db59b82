"""Commands about runs: run, runs, show, logs, cancel, retry."""

from __future__ import annotations

import re
from typing import Annotated, Any, NoReturn

import typer
from rich.text import Text

from orchestrator.cli.api.stream import follow
from orchestrator.cli.context import Command, command, now
from orchestrator.cli.errors import INTERRUPTED, BadUsage, CliError, RunCancelled, RunFailed
from orchestrator.cli.excluded import DEFAULT, MaxExcludedOption, raise_for_excluded, read_max_excluded
from orchestrator.cli.view.live import RunView, watch
from orchestrator.cli.view.output import JsonFlag
from orchestrator.cli.view.runs import remarks, result_table, run_detail, runs_table, subject
from orchestrator.cli.view.text import clean

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or any beginning of it that is unique.")]

STATUSES = ("pending", "starting", "running", "completed", "failed", "cancelled")
_SPAN = re.compile(r"(\d+)([smh]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def run(
    model: Annotated[
        list[str], typer.Option("--model", "-m", help="Slug or id of a model; several: one run each, at once.")
    ],
    sample_size: Annotated[
        str, typer.Option("--sample-size", "-n", metavar="N|P%|all", help="How many problems: a number, a share, or all.")
    ],
    benchmark: Annotated[
        list[str] | None, typer.Option("--benchmark", "-b", help="Benchmark; several are possible. Default: the service's.")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Answers per problem.")] = 1,
    instance_type: Annotated[str | None, typer.Option(help="Size of the container; `benchyard fleet` lists them.")] = None,
    budget: Annotated[float | None, typer.Option(metavar="USD", help="The run may cost so much and no more.")] = None,
    reuse_answers: Annotated[
        bool | None,
        typer.Option("--reuse-answers/--fresh-answers", help="Use answers that other runs bought to the same questions."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Chooses the sample; the same seed, the same problems.")] = 0,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Items worked on at once within the run.")] = None,
    provider: Annotated[str | None, typer.Option(help="Only on these machines: local, or the provider of agents.")] = None,
    deadline: Annotated[str | None, typer.Option(metavar="TIME", help="Longest duration: 90s, 15m, 2h.")] = None,
    priority: Annotated[int, typer.Option(help="Higher starts earlier.")] = 0,
    after: Annotated[str | None, typer.Option(metavar="DATE", help="Only problems from this day on, 2024-08-01.")] = None,
    before: Annotated[str | None, typer.Option(metavar="DATE", help="Only problems up to this day.")] = None,
    difficulty: Annotated[list[str] | None, typer.Option(help="Only of this difficulty; may be repeated.")] = None,
    platform: Annotated[list[str] | None, typer.Option(help="Only from this platform; may be repeated.")] = None,
    category: Annotated[list[str] | None, typer.Option(help="Only of this category; may be repeated.")] = None,
    ids: Annotated[list[str] | None, typer.Option("--id", help="Only this problem; may be repeated.")] = None,
    exclude_flagged: Annotated[bool, typer.Option("--exclude-flagged", help="Without problems known to be faulty.")] = False,
    max_excluded: MaxExcludedOption = DEFAULT,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait: print the ids and return.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Run models on a benchmark, show progress, then the scores with their 95 % intervals.

    Exit code: 0 completed, 3 failed or more items left out than --max-excluded allows, 4 cancelled.
    """
    limit = read_max_excluded(max_excluded)
    body: dict[str, Any] = {
        **read_sample_size(sample_size),
        "benchmarks": benchmark or None,
        "samples_per_problem": samples,
        "instance_type": instance_type,
        "provider": provider,
        "budget_usd": budget,
        "reuse_answers": reuse_answers,
        "seed": seed,
        "concurrency": concurrency,
        "deadline_s": None if deadline is None else read_span(deadline),
        "priority": priority,
        "after": after,
        "before": before,
        "difficulty": difficulty or None,
        "platform": platform or None,
        "category": category or None,
        "ids": ids or None,
        "exclude_flagged": exclude_flagged or None,
    }
    body = {key: value for key, value in body.items() if value is not None}
    with command(as_json) as cmd:
        run_ids = submit(cmd, [{**body, "model_id": each} for each in model])
        if detach:
            cmd.out.result(
                {"runs": [{"id": each, "model": slug} for each, slug in zip(run_ids, model, strict=True)]},
                lambda: Text("\n".join(run_ids)),
            )
            return
        finished = wait(cmd, run_ids)
        cmd.out.result({"runs": finished}, lambda: result_table(finished, now()))
        say_remarks(cmd, finished)
        raise_for(finished)
        raise_for_excluded(finished, limit)


def submit(cmd: Command, bodies: list[dict[str, Any]]) -> list[str]:
    """Create the runs; one that is refused after others were taken says which go on."""
    run_ids: list[str] = []
    for body in bodies:
        try:
            run_ids.append(cmd.client.create_run(body))
        except CliError:
            for run_id in run_ids:
                cmd.out.warn(f"Run {run_id} was started before the error and goes on; benchyard cancel {run_id} stops it.")
            raise
    return run_ids


def wait(cmd: Command, run_ids: list[str]) -> list[dict[str, Any]]:
    """Show the runs until they are over. Interrupted, they go on."""
    try:
        return watch(cmd.client, cmd.out, run_ids, connect=cmd.connect)
    except KeyboardInterrupt:
        _say_that_it_goes_on(cmd, run_ids)
        raise typer.Exit(INTERRUPTED) from None
    except CliError:
        _say_that_it_goes_on(cmd, run_ids)
        raise


def _say_that_it_goes_on(cmd: Command, run_ids: list[str]) -> None:
    for run_id in run_ids:
        cmd.out.warn(f"Run {run_id} goes on: benchyard show {run_id}; to stop it: benchyard cancel {run_id}")


def say_remarks(cmd: Command, runs: list[dict[str, Any]]) -> None:
    for each in runs:
        for sentence in remarks(each):
            cmd.out.say(f"{clean(subject(each))}: {sentence}", "yellow")


def raise_for(runs: list[dict[str, Any]]) -> None:
    """A failed run outweighs a cancelled one."""
    for status, error in (("failed", RunFailed), ("cancelled", RunCancelled)):
        ended = [str(each["id"]) for each in runs if each["status"] == status]
        if ended:
            raise error(f"Run {', '.join(ended)} {'was ' if status == 'cancelled' else ''}{status}.")


def runs(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most so many, newest first.")] = 20,
    status: Annotated[str | None, typer.Option(help=f"Only those that are: {', '.join(STATUSES)}.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Only those of this model.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List runs, newest first."""
    if status is not None and status not in STATUSES:
        raise BadUsage(f"There is no status {clean(status)!r}; it is one of {', '.join(STATUSES)}.")
    with command(as_json) as cmd:
        number = None if model is None else _model_number(cmd, model)
        found = cmd.client.runs(limit=limit, status=status, model=number)
        cmd.out.result({"items": found}, lambda: runs_table(found, now()))


def _model_number(cmd: Command, model: str) -> int:
    for each in cmd.client.models(archived=True):
        if model in (each["slug"], str(each["id"])):
            return int(each["id"])
    raise CliError(f"There is no model {clean(model)!r}; `benchyard models` lists those there are.")


def show(run_id: RunArgument, as_json: JsonFlag = False) -> None:
    """Show one run: result, outcomes, attempts, and why it ended."""
    with command(as_json) as cmd:
        found = cmd.client.find_run(run_id)
        cmd.out.result(found, lambda: run_detail(found, now()))


def logs(
    run_id: RunArgument,
    follow_on: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run is over.")] = False,
    attempt: Annotated[
        int | None, typer.Option(min=1, help="Container output of this attempt; default: the newest.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what the runner said, and the end of its container's output."""
    with command(as_json) as cmd:
        found = cmd.client.find_run(run_id)
        if follow_on:
            _follow_logs(cmd, found)
        said = cmd.client.logs(str(found["id"]), attempt=attempt)
        if as_json:
            cmd.out.json({"container_log": said["container_log"]} if follow_on else said)
            return
        if not follow_on:
            for line in said["lines"]:
                _log_line(cmd, line["at"], line["level"], line["message"])
        if said["container_log"]:
            cmd.out.note("--- container output")
            cmd.out.say(clean(said["container_log"], lines=True).rstrip("\n"))


def _follow_logs(cmd: Command, run: dict[str, Any]) -> None:
    view = RunView.of(run)
    try:
        for event in follow(cmd.client, view.run_id):
            if cmd.out.as_json:
                if event.type in ("log", "stage", "transition"):
                    cmd.out.json(event.data)
            elif event.type == "log":
                _log_line(cmd, event.data["at"], event.data.get("level", "info"), event.data.get("message", ""))
            elif event.type == "transition":
                view = view.after(event)
                cmd.out.note(f"--- {view.word}{f': {view.note}' if view.note else ''}")
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _log_line(cmd: Command, at: object, level: object, message: object) -> None:
    style = {"error": "red", "warning": "yellow"}.get(str(level), "")
    cmd.out.say(f"{clean(at)[:23]} {clean(level):7} {clean(message, lines=True)}", style)


def cancel(
    run_ids: Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids, or unique beginnings of ids.")],
    as_json: JsonFlag = False,
) -> None:
    """Stop runs. What they finished stays; `retry` takes them up again."""
    with command(as_json) as cmd:
        ended = [cmd.client.cancel(str(cmd.client.find_run(each)["id"])) for each in run_ids]
        cmd.out.result({"items": ended}, lambda: Text("\n".join(_cancel_sentence(each) for each in ended)))


def _cancel_sentence(run: dict[str, Any]) -> str:
    if run["status"] == "cancelled":
        return f"Run {clean(run['id'])} is cancelled."
    return f"Run {clean(run['id'])} is being cancelled; it ends when its container is gone."


def retry(
    run_id: RunArgument,
    max_excluded: MaxExcludedOption = DEFAULT,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait: print the new id and return.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Take an ended run up again as a new one: finished results are kept, the rest is done again."""
    limit = read_max_excluded(max_excluded)
    with command(as_json) as cmd:
        new_id = cmd.client.retry(str(cmd.client.find_run(run_id)["id"]))
        if detach:
            cmd.out.result({"runs": [{"id": new_id}]}, lambda: Text(new_id))
            return
        finished = wait(cmd, [new_id])
        cmd.out.result({"runs": finished}, lambda: result_table(finished, now()))
        say_remarks(cmd, finished)
        raise_for(finished)
        raise_for_excluded(finished, limit)


def read_sample_size(text: str) -> dict[str, Any]:
    """`20`, `25%` or `all`, as the API's fields."""
    word = text.strip().lower()
    if word == "all":
        return {"subset_pct": 100.0}
    try:
        if word.endswith("%"):
            return {"subset_pct": float(word[:-1])}
        return {"sample_size": int(word)}
    except ValueError:
        _refuse("--sample-size", text, "a number of problems, a share such as 25%, or all")


def read_span(text: str, option: str = "--deadline") -> int:
    """Seconds from `90`, `90s`, `15m` or `2h`."""
    found = _SPAN.fullmatch(text.strip().lower())
    if found is None:
        _refuse(option, text, "a duration such as 90s, 15m or 2h")
    return int(found[1]) * _SECONDS[found[2]]


def _refuse(option: str, given: str, wanted: str) -> NoReturn:
    raise BadUsage(f"{option} {clean(given)!r} is not {wanted}.")
