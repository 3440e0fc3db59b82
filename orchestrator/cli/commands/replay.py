"""The command `replay`: grade the answers of an archive again in a fresh container, and compare."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from orchestrator.archives.format.reading import BadArchive
from orchestrator.cli.commands.grading import EngineOption, SizeOption, grading_service, wait_graded
from orchestrator.cli.commands.runs import raise_for
from orchestrator.cli.context import Command, command
from orchestrator.cli.errors import BadUsage, CliError
from orchestrator.cli.files.replay_answers import Unpacked, unpacked
from orchestrator.cli.view.output import JsonFlag, facts, table
from orchestrator.cli.view.text import clean

COMMAND = "command"
SHOWN = 20


def replay(
    archive: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="The result.tar.gz of a run, or a batch's archive.")],
    instance_type: SizeOption = None,
    engine: EngineOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Grade the answers of an archive again, without any model, and say whether every verdict is the same.

    Goes through the service if one runs, and otherwise does without. Exit code 1 if a verdict moved.
    """
    if not archive.is_file():
        raise BadUsage(f"There is no file {clean(archive)}.")
    with tempfile.TemporaryDirectory(prefix="benchyard-replay-") as folder:
        try:
            found = unpacked(archive, Path(folder))
        except BadArchive as error:
            raise CliError(clean(error)) from error
        with command(as_json) as cmd, grading_service(cmd, engine) as (place, is_own):
            _check_packs(place, found)
            graded, items = _graded(place, found, instance_type, is_own=is_own)
            runs = _compared(found, items)
            moved = [each for run in runs for each in run["moved"]]
            same = all(run["same"] for run in runs)
            about = {"archive": str(archive), "replayed_as": [run["id"] for run in graded], "same": same}
            answer = {**runs[0], **about} if found.batch_id is None else {**about, "batch_id": found.batch_id, "runs": runs}
            cmd.out.result(answer, lambda: facts(_shown(runs[0])) if found.batch_id is None else _table(runs))
            if moved and not as_json:
                columns = ("Problem", "Sample", "Before", "Now", "Official way before", "Now")
                rows = [(m["problem_id"], m["sample_index"], m["before"], m["after"], m["parity_before"] or "–",
                         m["parity_after"] or "–") for m in moved[:SHOWN]]  # fmt: skip
                cmd.out.console.print(table(columns, rows))
            raise_for(graded)
            if not same:
                verdicts = sum(run["verdicts"] for run in runs)
                raise CliError(f"{len(moved)} of {verdicts} verdicts moved: the digest is another one.")


def _check_packs(cmd: Command, found: Unpacked) -> None:
    """Before anything is started: the tests must be those of then."""
    if any(adapter == COMMAND for run in found.runs for _, adapter in run.verdicts.packs.values()):
        raise CliError("The archive is that of a command: it was measured, and there is no answer to grade again.")
    if not found.files:
        raise CliError("The archive holds no answer that could be graded again.")
    here = {each["name"]: each["pack_digest"] for each in cmd.client.benchmarks()}
    for run in found.runs:
        for name in {key[0] for key in run.verdicts.then} & set(found.files):
            wanted = run.verdicts.packs.get(name, ("", ""))[0]
            if here.get(name) != wanted:
                have = f"the one here is {here[name]}" if name in here else "there is none here"
                raise CliError(
                    f"The archive was graded with the dataset {clean(name)} ({clean(wanted)}); {have}. Add that one."
                )


def _graded(
    cmd: Command, found: Unpacked, instance_type: str | None, *, is_own: bool
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    made = [cmd.client.grade(path, benchmark=name, instance_type=instance_type) for name, path in found.files.items()]
    for accepted in made:
        cmd.out.note(f"{accepted['answers']} answers of {clean(accepted['benchmark'])} are graded again.")
    runs = wait_graded(cmd, [accepted["run_id"] for accepted in made], is_own=is_own)
    return runs, [item for run in runs for item in cmd.client.items(str(run["id"]))]


def _compared(found: Unpacked, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each run of the archive: its digest then and now."""
    answers = []
    for run, own in zip(found.runs, found.by_run(items), strict=True):
        digest, moved, kept = run.verdicts.now(own)
        answers.append(
            {
                "run_id": run.run_id,
                "verdicts": len(run.verdicts.then),
                "not_graded_again": kept,
                "grading_digest": run.grading_digest,
                "replayed_digest": digest,
                "same": digest == run.grading_digest,
                "moved": [asdict(each) for each in moved],
            }
        )
    return answers


def _shown(answer: dict[str, Any]) -> list[tuple[str, object]]:
    kept = answer["not_graded_again"]
    return [
        ("Run", answer["run_id"]),
        ("Verdicts", f"{answer['verdicts'] - len(answer['moved'])} of {answer['verdicts']} are the same"),
        ("Not again", f"{kept} have no whole answer and stay as they were" if kept else ""),
        ("Digest", answer["grading_digest"]),
        ("Now", "the same" if answer["same"] else answer["replayed_digest"]),
    ]


def _table(runs: list[dict[str, Any]]) -> Any:
    columns = ("Run", "Verdicts", "Moved", "Not again", "Digest")
    rows = [
        (run["run_id"], run["verdicts"], len(run["moved"]), run["not_graded_again"],
         "the same" if run["same"] else run["replayed_digest"])
        for run in runs
    ]  # fmt: skip
    return table(columns, rows)
