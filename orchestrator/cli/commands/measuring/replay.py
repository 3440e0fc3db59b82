"""The command `replay`: grades the answers of an archive again in a new container and compares the verdicts."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from orchestrator.archives.format.reading import BadArchive
from orchestrator.cli.api.client import Json
from orchestrator.cli.commands.measuring.grading import (
    EngineOption,
    SizeOption,
    grading_service,
    moves_table,
    run_items,
    submit_answers,
    wait_graded,
)
from orchestrator.cli.commands.measuring.runs import raise_for
from orchestrator.cli.context import Command, command
from orchestrator.cli.errors import BadUsage, CliError
from orchestrator.cli.files.replay_answers import UnpackedAnswers, unpacked
from orchestrator.cli.view.output import Columns, JsonFlag, facts, records_table
from orchestrator.cli.view.text import clean

COMMAND = "command"
SHOWN = 20
RUN_COLUMNS: Columns = {
    "Run": "run_id",
    "Verdicts": "verdicts",
    "Moved": lambda run: len(run["moved"]),
    "Not again": "not_graded_again",
    "Digest": lambda run: "the same" if run["same"] else run["replayed_digest"],
}


def replay(
    archive: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="The result.tar.gz of a run, or a batch's archive.")],
    instance_type: SizeOption = None,
    engine: EngineOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Grade the answers of an archive again, without a model, and check that every verdict is the same.

    Uses the running service; without one, the datasets of the data directory. Exit code 1 if a verdict changed.
    """
    if not archive.is_file():
        raise BadUsage(f"There is no file {clean(archive)}.")
    with tempfile.TemporaryDirectory(prefix="benchyard-replay-") as folder:
        try:
            contents = unpacked(archive, Path(folder))
        except BadArchive as error:
            raise CliError(clean(error)) from error
        with command(as_json) as cmd, grading_service(cmd, engine) as (here, is_own):
            _check_packs(here, contents)
            graded, items = _grade(here, contents, instance_type, is_own=is_own)
            runs = _compare(contents, items)
            moved = [move for run in runs for move in run["moved"]]
            same = all(run["same"] for run in runs)
            summary = {"archive": str(archive), "replayed_as": [run["id"] for run in graded], "same": same}
            if contents.batch_id is None:
                cmd.out.result({**runs[0], **summary}, lambda: _run_facts(runs[0]))
            else:
                answer = {**summary, "batch_id": contents.batch_id, "runs": runs}
                cmd.out.result(answer, lambda: records_table(runs, RUN_COLUMNS))
            if moved and not as_json:
                cmd.out.console.print(moves_table(moved[:SHOWN]))
            raise_for(graded)
            if not same:
                verdicts = sum(run["verdicts"] for run in runs)
                raise CliError(f"{len(moved)} of {verdicts} verdicts changed: the digest differs.")


def _check_packs(cmd: Command, contents: UnpackedAnswers) -> None:
    """Checks first that the datasets are those that the archive was graded with."""
    if any(adapter == COMMAND for run in contents.runs for _, adapter in run.verdicts.packs.values()):
        raise CliError("The archive belongs to a command: it was measured, and there is no answer to grade again.")
    if not contents.files:
        raise CliError("The archive holds no answer that could be graded again.")
    digests = {benchmark["name"]: benchmark["pack_digest"] for benchmark in cmd.client.items("/api/benchmarks")}
    for run in contents.runs:
        for name in {key[0] for key in run.verdicts.then} & set(contents.files):
            pack = run.verdicts.packs.get(name, ("", ""))[0]
            if digests.get(name) != pack:
                have = f"the one here is {digests[name]}" if name in digests else "there is none here"
                raise CliError(
                    f"The archive was graded with the dataset {clean(name)} ({clean(pack)}); {have}. Add that one."
                )


def _grade(
    cmd: Command, contents: UnpackedAnswers, instance_type: str | None, *, is_own: bool
) -> tuple[list[Json], list[Json]]:
    submitted = [submit_answers(cmd.client, path, name, instance_type) for name, path in contents.files.items()]
    for accepted in submitted:
        cmd.out.note(f"{accepted['answers']} answers of {clean(accepted['benchmark'])} are graded again.")
    runs = wait_graded(cmd, [accepted["run_id"] for accepted in submitted], is_own=is_own)
    return runs, [item for run in runs for item in run_items(cmd.client, run)]


def _compare(contents: UnpackedAnswers, items: list[Json]) -> list[Json]:
    """The old and new digest of each run in the archive."""
    comparisons = []
    for run, run_verdicts in zip(contents.runs, contents.by_run(items), strict=True):
        digest, moved, not_graded = run.verdicts.now(run_verdicts)
        comparisons.append(
            {
                "run_id": run.run_id,
                "verdicts": len(run.verdicts.then),
                "not_graded_again": not_graded,
                "grading_digest": run.grading_digest,
                "replayed_digest": digest,
                "same": digest == run.grading_digest,
                "moved": [asdict(move) for move in moved],
            }
        )
    return comparisons


def _run_facts(run: Json) -> Table:
    not_graded = run["not_graded_again"]
    return facts(
        [
            ("Run", run["run_id"]),
            ("Verdicts", f"{run['verdicts'] - len(run['moved'])} of {run['verdicts']} are the same"),
            ("Not again", f"{not_graded} have no complete answer and keep their verdict" if not_graded else ""),
            ("Digest", run["grading_digest"]),
            ("Now", "the same" if run["same"] else run["replayed_digest"]),
        ]
    )
