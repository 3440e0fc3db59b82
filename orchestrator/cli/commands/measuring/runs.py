"""Commands that start and stop runs: run, retry, cancel; and waiting for runs, which other commands use too."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from orchestrator.cli.api.client import Json, given, run_path
from orchestrator.cli.context import Command, command, now
from orchestrator.cli.errors import INTERRUPTED, BadUsage, CliError, RunCancelled, RunFailed
from orchestrator.cli.excluded import DEFAULT, MaxExcludedOption, raise_for_excluded, read_max_excluded
from orchestrator.cli.files.preset_body import preset_body
from orchestrator.cli.gates import (
    FailIfWorseOption,
    FailUnderOption,
    JunitOption,
    below,
    comparisons,
    raise_for_gates,
    refuse_with_detach,
    said,
    worse,
    write_junit,
)
from orchestrator.cli.view.live import watch
from orchestrator.cli.view.output import JsonFlag
from orchestrator.cli.view.runs import remarks, result_table, subject
from orchestrator.cli.view.text import clean

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or any beginning of it that is unique.")]
RunArguments = Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids, or unique beginnings of ids.")]

_SPAN = re.compile(r"(\d+)([smh]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def run(
    model: Annotated[
        list[str], typer.Option("--model", "-m", help="Slug or id of a model; several: one run each, at once.")
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENT...]", help="With --harness: arguments for the harness.")
    ] = None,
    sample_size: Annotated[
        str | None,
        typer.Option("--sample-size", "-n", metavar="N|P%|all", help="How many problems: a number, a share, or all."),
    ] = None,
    harness: Annotated[
        str | None, typer.Option(metavar="PRESET", help="Run a task of another harness: inspect, lm-eval.")
    ] = None,
    task: Annotated[
        str | None, typer.Option(metavar="FILE|NAME", help="With --harness: a file with the task, or a task's name.")
    ] = None,
    file: Annotated[
        list[Path] | None, typer.Option("--file", metavar="PATH", help="With --harness: a further file; may be repeated.")
    ] = None,
    benchmark: Annotated[
        list[str] | None, typer.Option("--benchmark", "-b", help="Benchmark; several are possible. Default: the service's.")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Answers per problem.")] = 1,
    instance_type: Annotated[str | None, typer.Option(help="Size of the container; `benchyard fleet` lists them.")] = None,
    budget: Annotated[float | None, typer.Option(metavar="USD", help="Maximum cost of the run.")] = None,
    reuse_answers: Annotated[
        bool | None,
        typer.Option("--reuse-answers/--fresh-answers", help="Use answers that other runs bought to the same questions."),
    ] = None,
    batch: Annotated[
        bool, typer.Option("--half-price", help="Through the provider's batches: cheaper, answered within a day.")
    ] = False,
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
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param", metavar="NAME=VALUE", help="How this run asks its model: effort=high, seed=7; may be repeated."
        ),
    ] = None,
    exclude_flagged: Annotated[bool, typer.Option("--exclude-flagged", help="Without problems known to be faulty.")] = False,
    name: Annotated[str | None, typer.Option(help="What to call the run.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A word to find the run by; may be repeated.")] = None,
    note: Annotated[str | None, typer.Option(help="Why the run is made, what to know about it.")] = None,
    max_excluded: MaxExcludedOption = DEFAULT,
    fail_under: FailUnderOption = None,
    fail_if_worse_than: FailIfWorseOption = None,
    junit: JunitOption = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait: print the ids and return.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Run models on a benchmark or on a task of another harness, show progress, then the scores with 95 % intervals.

    Exit code: 0 completed, 3 failed or more items left out than --max-excluded allows, 4 cancelled,
    6 below --fail-under or worse than the run of --fail-if-worse-than.
    """
    limit = read_max_excluded(max_excluded)
    refuse_with_detach(detach, fail_under, fail_if_worse_than, junit)
    if junit is not None and len(model) > 1:
        raise BadUsage("--junit holds one run; give one --model.")
    common = given(
        instance_type=instance_type,
        provider=provider,
        budget_usd=budget,
        reuse_answers=reuse_answers,
        concurrency=concurrency,
        deadline_s=None if deadline is None else read_span(deadline),
        priority=priority,
        name=name,
        tags=tag or None,
        note=note,
    )
    selection = given(
        benchmarks=benchmark or None,
        samples_per_problem=None if samples == 1 else samples,
        seed=seed or None,
        after=after,
        before=before,
        difficulty=difficulty or None,
        platform=platform or None,
        category=category or None,
        ids=ids or None,
        exclude_flagged=exclude_flagged or None,
        batch=batch or None,
        params=read_params(param or ()) or None,
    )
    if harness is not None:
        if sample_size is not None or selection:
            raise BadUsage("A harness chooses its problems itself: give its own arguments after --, such as -- --limit 10.")
        body = {**common, **preset_body(harness, task, file or (), arguments or ())}
    else:
        if task is not None or file or arguments:
            raise BadUsage("--task, --file and arguments after -- belong to --harness.")
        if sample_size is None:
            raise BadUsage("Say how many problems: --sample-size N, P% or all.")
        body = {**common, **read_sample_size(sample_size), **selection}
    with command(as_json) as cmd:
        base = None if fail_if_worse_than is None else cmd.client.find_run_id(fail_if_worse_than)
        run_ids = submit(cmd, [{**body, "model_id": slug} for slug in model])
        if detach:
            started = [{"id": run_id, "model": slug} for run_id, slug in zip(run_ids, model, strict=True)]
            cmd.out.result({"runs": started}, "\n".join(run_ids))
        else:
            runs = finish(cmd, run_ids)
            write_junit(cmd.client, runs, junit)
            raise_for_excluded(runs, limit)
            compared = comparisons(cmd.client, runs, base)
            for comparison in compared:
                cmd.out.note(said(comparison))
            raise_for_gates(below(runs, fail_under) + worse(compared))


def retry(
    run_id: RunArgument,
    max_excluded: MaxExcludedOption = DEFAULT,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait: print the new id and return.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Continue an ended run as a new one: finished results are kept, the rest is repeated."""
    limit = read_max_excluded(max_excluded)
    with command(as_json) as cmd:
        new_id = str(cmd.client.post(f"{run_path(cmd.client.find_run_id(run_id))}/retry")["run_id"])
        if detach:
            cmd.out.result({"runs": [{"id": new_id}]}, new_id)
        else:
            raise_for_excluded(finish(cmd, [new_id]), limit)


def cancel(run_ids: RunArguments, as_json: JsonFlag = False) -> None:
    """Stop runs. Their finished results stay; `retry` continues them."""
    with command(as_json) as cmd:
        runs = [cmd.client.post(f"{run_path(cmd.client.find_run_id(run_id))}/cancel") for run_id in run_ids]
        cmd.out.result({"items": runs}, "\n".join(map(_cancel_sentence, runs)))


def _cancel_sentence(run: Json) -> str:
    if run["status"] == "cancelled":
        return f"Run {clean(run['id'])} is cancelled."
    return f"Run {clean(run['id'])} is being cancelled; it ends when its container is gone."


def submit(cmd: Command, bodies: list[Json]) -> list[str]:
    """Creates the runs. If one is refused, a warning names those already started."""
    run_ids: list[str] = []
    for body in bodies:
        try:
            run_ids.append(str(cmd.client.post("/api/container-runs", body)["run_id"]))
        except CliError:
            for run_id in run_ids:
                cmd.out.warn(f"Run {run_id} was started before the error and continues; benchyard cancel {run_id} stops it.")
            raise
    return run_ids


def finish(cmd: Command, run_ids: list[str]) -> list[Json]:
    """Waits for runs and prints their results; raises an error if one failed or was cancelled."""
    runs = wait(cmd, run_ids)
    cmd.out.result({"runs": runs}, lambda: result_table(runs, now()))
    say_remarks(cmd, runs)
    raise_for(runs)
    return runs


def wait(cmd: Command, run_ids: list[str]) -> list[Json]:
    """Shows the runs until they end. An interruption does not stop them."""
    try:
        return watch(cmd.client, cmd.out, run_ids, connect=cmd.connect)
    except (KeyboardInterrupt, CliError) as error:
        for run_id in run_ids:
            cmd.out.warn(f"Run {run_id} continues: benchyard show {run_id}; to stop it: benchyard cancel {run_id}")
        if isinstance(error, CliError):
            raise
        raise typer.Exit(INTERRUPTED) from None


def say_remarks(cmd: Command, runs: list[Json]) -> None:
    for run in runs:
        for sentence in remarks(run):
            cmd.out.say(f"{clean(subject(run))}: {sentence}", "yellow")


def raise_for(runs: list[Json]) -> None:
    """A failed run takes precedence over a cancelled one."""
    for status, error in (("failed", RunFailed), ("cancelled", RunCancelled)):
        ended = [str(run["id"]) for run in runs if run["status"] == status]
        if ended:
            raise error(f"Run {', '.join(ended)} {'was ' if status == 'cancelled' else ''}{status}.")


def read_sample_size(text: str) -> dict[str, Any]:
    """Parses `20`, `25%` or `all` into the API's fields."""
    word = text.strip().lower()
    if word == "all":
        return {"subset_pct": 100.0}
    try:
        if word.endswith("%"):
            return {"subset_pct": float(word[:-1])}
        return {"sample_size": int(word)}
    except ValueError:
        _refuse("--sample-size", text, "a number of problems, a share such as 25%, or all")


def read_params(texts: Sequence[str]) -> dict[str, Any]:
    """Parses `effort=high` and `extra_body={"min_p": 0.1}`: a value that is JSON, or a text."""
    params: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            _refuse("--param", text, "a name and a value such as effort=high")
        try:
            params[name.strip()] = json.loads(value)
        except ValueError:
            params[name.strip()] = value
    return params


def read_span(text: str, option: str = "--deadline") -> int:
    """Seconds from `90`, `90s`, `15m` or `2h`."""
    match = _SPAN.fullmatch(text.strip().lower())
    if match is None:
        _refuse(option, text, "a duration such as 90s, 15m or 2h")
    return int(match[1]) * _SECONDS[match[2]]


def _refuse(option: str, text: str, expected: str) -> NoReturn:
    raise BadUsage(f"{option} {clean(text)!r} is not {expected}.")
