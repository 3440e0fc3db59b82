"""Commands that judge answers which are there already: grade, regrade. No model is asked."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.cli.api.client import Client
from orchestrator.cli.commands.runs import RunArgument, raise_for, say_remarks, wait
from orchestrator.cli.context import Command, command, now
from orchestrator.cli.errors import INTERRUPTED, BadUsage
from orchestrator.cli.local.where import service_runs
from orchestrator.cli.view.live import watch
from orchestrator.cli.view.output import JsonFlag, facts, table
from orchestrator.cli.view.runs import result_table
from orchestrator.cli.view.text import clean, interval, outcomes_sentence, percent

SHOWN = 10
ENGINES = ("auto", "docker", "process")
EngineOption = Annotated[
    str | None, typer.Option(help="Without a running service: auto, docker or process. Default: BENCHYARD_ENGINE.")
]
SizeOption = Annotated[
    str | None, typer.Option(help="Size of the container. Default: the one with the most cores that fits.")
]
WRITTEN = (
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
    benchmark: Annotated[str, typer.Option("--benchmark", "-b", help="The benchmark that the answers are for.")],
    samples: Annotated[Path, typer.Option("--samples", "-s", help="The file of answers; docs/grading.md has the formats.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write a verdict per answer to this file, JSON lines.")
    ] = None,
    instance_type: SizeOption = None,
    engine: EngineOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Judge stored answers without any model, in a container, as a run would.

    Goes through the service if one runs, and otherwise does without: with the datasets of the data directory.
    """
    if not samples.is_file():
        raise BadUsage(f"There is no file {clean(samples)}.")
    if out is not None and not out.absolute().parent.is_dir():
        raise BadUsage(f"There is no directory {clean(out.absolute().parent)} for --out.")
    with command(as_json) as cmd, grading_service(cmd, engine) as (place, is_own):
        accepted = place.client.grade(samples, benchmark=benchmark, instance_type=instance_type)
        _say_accepted(cmd, accepted)
        (run,) = wait_graded(place, [accepted["run_id"]], is_own=is_own)
        items = place.client.items(str(run["id"]))
        if out is not None:
            write_verdicts(out, items)
        summary = summarise(accepted, run, items)
        cmd.out.result(summary, lambda: facts(_shown(summary)))
        say_remarks(cmd, [run])
        raise_for([run])


@contextmanager
def grading_service(cmd: Command, engine: str | None) -> Iterator[tuple[Command, bool]]:
    """The service that runs here, or one that lives as long as the block; the second says whether it is our own."""
    if engine is not None and engine not in ENGINES:
        raise BadUsage(f"--engine {clean(engine)!r} is not one of {', '.join(ENGINES)}.")
    if service_runs(cmd):
        if engine is not None:
            raise BadUsage("--engine is for grading without a service, but one runs here.")
        yield cmd, False
        return
    from orchestrator.cli.local.temporary_service import local_service

    cmd.out.note("No service runs here: grading with the datasets of the data directory.")
    with local_service(cmd.settings, engine) as connection, Client(connection) as client:
        yield replace(cmd, connection=connection, client=client), True


def wait_graded(cmd: Command, run_ids: list[str], *, is_own: bool) -> list[dict[str, Any]]:
    """The runs when they are over. A service of our own ends with the command, and they with it."""
    if not is_own:
        return wait(cmd, run_ids)
    try:
        return watch(cmd.client, cmd.out, run_ids, connect=cmd.connect)
    except KeyboardInterrupt:
        cmd.out.warn("Grading was stopped; nothing is left of it.")
        raise typer.Exit(INTERRUPTED) from None


def _say_accepted(cmd: Command, accepted: dict[str, Any]) -> None:
    cmd.out.note(
        f"{accepted['answers']} answers to {accepted['problems']} problems of {clean(accepted['benchmark'])} are graded."
    )
    _say_some(cmd, int(accepted["left_out"]), accepted["left_out_lines"], "could not be used and is left out", "left out")
    if accepted["unattempted"]:
        ids = ", ".join(map(clean, accepted["unattempted_ids"][:SHOWN]))
        more = " and more" if accepted["unattempted"] > SHOWN else ""
        cmd.out.warn(f"{accepted['unattempted']} problems have no answer and are not in the score: {ids}{more}.")


def _say_some(cmd: Command, count: int, lines: list[str], word: str, short: str) -> None:
    for line in lines[:SHOWN]:
        cmd.out.warn(f"{clean(line)} ({word})" if count == 1 else clean(line))
    if count > SHOWN:
        cmd.out.warn(f"... and {count - SHOWN} more {short}; --json lists them.")


def write_verdicts(out: Path, items: list[dict[str, Any]]) -> None:
    """One JSON object per line; the file is there whole or not at all."""
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        with part.open("w") as file:
            for item in items:
                row = {name: item[name] for name in WRITTEN if item.get(name) is not None}
                file.write(json.dumps(row) + "\n")
        part.replace(out)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise BadUsage(f"--out {clean(out)} cannot be written: {error.strerror}.") from error


def summarise(accepted: dict[str, Any], run: dict[str, Any], items: list[dict[str, Any]]) -> dict[str, Any]:
    """What `--json` prints. Pure."""
    parity = [item["parity_outcome"] for item in items if item["parity_outcome"] is not None]
    return {
        "benchmark": accepted["benchmark"],
        "pack_digest": accepted["pack_digest"],
        "run_id": run["id"],
        "status": run["status"],
        "total": len(items),
        "passed": sum(item["outcome"] == "passed" for item in items),
        "outcomes": dict(sorted(Counter(item["outcome"] for item in items).items())),
        "parity_passed": sum(each == "passed" for each in parity) if parity else None,
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


def _shown(summary: dict[str, Any]) -> list[tuple[str, object]]:
    score = summary["score"] or {}
    rates = ", ".join(f"pass@{k} {percent(rate)}" for k, rate in (summary["pass_at_k"] or {}).items())
    return [
        ("Benchmark", f"{clean(summary['benchmark'])} ({clean(summary['pack_digest'])[:19]})"),
        ("Passed", f"{summary['passed']} of {summary['total']}"),
        ("Score", score and f"{percent(score['estimate'])}   95 % interval {interval(score)}   n = {score['n']}"),
        ("Pass at k", rates),
        ("Outcomes", outcomes_sentence(summary["outcomes"])),
        ("Official way", "" if summary["parity_passed"] is None else f"{summary['parity_passed']} passed"),
        ("Fragile", summary["fragile"] or ""),
        ("Left out", f"{summary['left_out']} lines" if summary["left_out"] else ""),
        ("No answer", f"{summary['unattempted']} problems" if summary["unattempted"] else ""),
    ]


def regrade(run_id: RunArgument, as_json: JsonFlag = False) -> None:
    """Judge the stored answers of an ended run again, free of charge, and say which verdicts moved."""
    with command(as_json) as cmd:
        old = cmd.client.find_run(run_id)
        made = cmd.client.regrade(str(old["id"]))
        _say_some(cmd, int(made["left_out"]), made["left_out_lines"], "not graded again", "items without an answer")
        run = wait(cmd, [made["run_id"]])[0]
        moves = cmd.client.moves(str(run["id"]))
        columns = ("Problem", "Sample", "Before", "Now", "Official way before", "Now")
        rows = [
            (
                move["problem_id"],
                move["sample_index"],
                move["before"],
                move["after"],
                move["parity_before"] or "–",
                move["parity_after"] or "–",
            )
            for move in moves
        ]
        answer = {"run": run, "moves": moves, "answers": made["answers"], "left_out": made["left_out"]}
        cmd.out.result(answer, lambda: result_table([run], now()))
        cmd.out.say(f"{len(moves)} of {made['answers']} verdicts moved.")
        if moves and not as_json:
            cmd.out.console.print(table(columns, rows))
        say_remarks(cmd, [run])
        raise_for([run])
