"""Commands that grade stored answers: grade, regrade. No model is called."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from orchestrator.cli.api.client import Client, Json, run_path
from orchestrator.cli.commands.measuring.runs import RunArgument, raise_for, say_remarks, wait
from orchestrator.cli.context import Command, command, now
from orchestrator.cli.errors import INTERRUPTED, BadUsage
from orchestrator.cli.files.writing import whole_file
from orchestrator.cli.local.service_process import service_runs
from orchestrator.cli.view.live import watch
from orchestrator.cli.view.output import SHOWN_LINES, JsonFlag, facts, table
from orchestrator.cli.view.runs import result_table
from orchestrator.cli.view.text import clean, estimate, interval, outcomes_sentence, percent

ENGINES = ("auto", "docker", "process")
EngineOption = Annotated[
    str | None, typer.Option(help="Without a running service: auto, docker or process. Default: BENCHYARD_ENGINE.")
]
SizeOption = Annotated[
    str | None, typer.Option(help="Size of the container. Default: the one with the most cores that fits.")
]
VERDICT_FIELDS = (
    "benchmark",
    "problem_id",
    "sample_index",
    "outcome",
    "parity_outcome",
    "detail",
    "tests_passed",
    "tests_total",
    "cpu_s",
    "wall_s",
    "peak_bytes",
    "fragile",
)


def grade(
    benchmark: Annotated[str, typer.Option("--benchmark", "-b", help="The benchmark that the answers belong to.")],
    samples: Annotated[Path, typer.Option("--samples", "-s", help="The file of answers; docs/grading.md has the formats.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write a verdict per answer to this file, JSON lines.")
    ] = None,
    instance_type: SizeOption = None,
    engine: EngineOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Grade stored answers in a container as in a run, without a model.

    Uses the running service; without one, the datasets of the data directory.
    """
    if not samples.is_file():
        raise BadUsage(f"There is no file {clean(samples)}.")
    if out is not None and not out.absolute().parent.is_dir():
        raise BadUsage(f"There is no directory {clean(out.absolute().parent)} for --out.")
    with command(as_json) as cmd, grading_service(cmd, engine) as (here, is_own):
        accepted = submit_answers(here.client, samples, benchmark, instance_type)
        say_accepted(cmd, accepted)
        (run,) = wait_graded(here, [accepted["run_id"]], is_own=is_own)
        items = run_items(here.client, run)
        if out is not None:
            write_verdicts(out, items)
        summary = summarise(accepted, run, items)
        cmd.out.result(summary, lambda: facts(_summary_facts(summary)))
        say_remarks(cmd, [run])
        raise_for([run])


def submit_answers(client: Client, file: Path, benchmark: str, instance_type: str | None, model: str | None = None) -> Json:
    """Sends a file of stored answers, which are graded as a run; of a model, if it is named."""
    query = {"benchmark": benchmark, "filename": file.name, "instance_type": instance_type or None, "model": model}
    return client.upload("POST", "/api/grades", file, **query)


def run_items(client: Client, run: Json) -> list[Json]:
    """All results of a run in the order of its plan, without the large texts."""
    return client.pages(f"{run_path(str(run['id']))}/items")


@contextmanager
def grading_service(cmd: Command, engine: str | None) -> Iterator[tuple[Command, bool]]:
    """The running service, or a temporary one that ends with the block; the flag says whether it is temporary."""
    if engine is not None and engine not in ENGINES:
        raise BadUsage(f"--engine {clean(engine)!r} is not one of {', '.join(ENGINES)}.")
    if service_runs(cmd.settings, cmd.connection, cmd.client):
        if engine is not None:
            raise BadUsage("--engine is for grading without a service, but one runs here.")
        yield cmd, False
        return
    from orchestrator.cli.local.temporary_service import local_service

    cmd.out.note("No service runs here: grading with the datasets of the data directory.")
    with local_service(cmd.settings, engine) as connection, Client(connection) as client:
        yield replace(cmd, connection=connection, client=client), True


def wait_graded(cmd: Command, run_ids: list[str], *, is_own: bool) -> list[Json]:
    """Waits for the runs and returns them. A temporary service ends with the command, and so do its runs."""
    if not is_own:
        return wait(cmd, run_ids)
    try:
        return watch(cmd.client, cmd.out, run_ids, connect=cmd.connect)
    except KeyboardInterrupt:
        cmd.out.warn("Grading was stopped; nothing of it is kept.")
        raise typer.Exit(INTERRUPTED) from None


def say_accepted(cmd: Command, accepted: Json) -> None:
    """Says which answers of a file are graded, and which not."""
    cmd.out.note(
        f"{accepted['answers']} answers to {accepted['problems']} problems of {clean(accepted['benchmark'])} are graded."
    )
    _say_left_out(cmd, accepted, "could not be used and is left out", "left out")
    if accepted["unattempted"]:
        ids = ", ".join(map(clean, accepted["unattempted_ids"][:SHOWN_LINES]))
        more = " and more" if accepted["unattempted"] > SHOWN_LINES else ""
        cmd.out.warn(f"{accepted['unattempted']} problems have no answer and are not in the score: {ids}{more}.")


def _say_left_out(cmd: Command, accepted: Json, why: str, short: str) -> None:
    count = int(accepted["left_out"])
    lines = [f"{clean(line)} ({why})" if count == 1 else clean(line) for line in accepted["left_out_lines"]]
    cmd.out.warn_some(lines, count, short)


def write_verdicts(out: Path, items: list[Json]) -> None:
    """One JSON object per line."""
    try:
        with whole_file(out) as file:
            for item in items:
                row = {name: item[name] for name in VERDICT_FIELDS if item.get(name) is not None}
                file.write(json.dumps(row).encode() + b"\n")
    except OSError as error:
        raise BadUsage(f"--out {clean(out)} cannot be written: {error.strerror}.") from error


def summarise(accepted: Json, run: Json, items: list[Json]) -> Json:
    """The result that `--json` prints. Pure."""
    parity = [item["parity_outcome"] for item in items if item["parity_outcome"] is not None]
    return {
        "benchmark": accepted["benchmark"],
        "pack_digest": accepted["pack_digest"],
        "run_id": run["id"],
        "status": run["status"],
        "total": len(items),
        "passed": sum(item["outcome"] == "passed" for item in items),
        "outcomes": dict(sorted(Counter(item["outcome"] for item in items).items())),
        "parity_passed": parity.count("passed") if parity else None,
        "parity_outcomes": dict(sorted(Counter(parity).items())) if parity else None,
        "pass_at_k": (run["score"] or {}).get("pass_at_k"),
        "score": run["score"],
        "fragile": sum(bool(item["fragile"]) for item in items),
        "problems": accepted["problems"],
        "unattempted": accepted["unattempted"],
        "unattempted_ids": accepted["unattempted_ids"],
        "left_out": accepted["left_out"],
        "left_out_lines": accepted["left_out_lines"],
    }


def _summary_facts(summary: Json) -> list[tuple[str, object]]:
    score = summary["score"] or {}
    rates = ", ".join(f"pass@{k} {percent(rate)}" for k, rate in (summary["pass_at_k"] or {}).items())
    return [
        ("Benchmark", f"{clean(summary['benchmark'])} ({clean(summary['pack_digest'])[:19]})"),
        ("Passed", f"{summary['passed']} of {summary['total']}"),
        ("Score", score and f"{estimate(score)}   95 % interval {interval(score)}   n = {score['n']}"),
        ("Pass at k", rates),
        ("Outcomes", outcomes_sentence(summary["outcomes"])),
        ("Official way", "" if summary["parity_passed"] is None else f"{summary['parity_passed']} passed"),
        ("Fragile", summary["fragile"] or ""),
        ("Left out", f"{summary['left_out']} lines" if summary["left_out"] else ""),
        ("No answer", f"{summary['unattempted']} problems" if summary["unattempted"] else ""),
    ]


def regrade(run_id: RunArgument, as_json: JsonFlag = False) -> None:
    """Grade the stored answers of an ended run again, free of charge, and show which verdicts changed."""
    with command(as_json) as cmd:
        accepted = cmd.client.post(f"{run_path(cmd.client.find_run_id(run_id))}/regrade")
        _say_left_out(cmd, accepted, "not graded again", "items without an answer")
        (run,) = wait(cmd, [accepted["run_id"]])
        moves = cmd.client.items(f"{run_path(str(run['id']))}/moves")
        answer = {"run": run, "moves": moves, "answers": accepted["answers"], "left_out": accepted["left_out"]}
        cmd.out.result(answer, lambda: result_table([run], now()))
        cmd.out.say(f"{len(moves)} of {accepted['answers']} verdicts changed.")
        if moves and not as_json:
            cmd.out.console.print(moves_table(moves))
        say_remarks(cmd, [run])
        raise_for([run])


def moves_table(moves: list[Json]) -> Table:
    """The verdicts that changed."""
    names = ("problem_id", "sample_index", "before", "after", "parity_before", "parity_after")
    rows = [["–" if move[name] is None else move[name] for name in names] for move in moves]
    return table(("Problem", "Sample", "Before", "Now", "Official way before", "Now"), rows)
