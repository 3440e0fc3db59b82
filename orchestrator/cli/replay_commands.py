"""The command `replay`: grade the answers of an archive again in a fresh container, and compare."""

from __future__ import annotations

import gzip
import json
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from orchestrator.archives.reading import BadArchive, read_archive
from orchestrator.archives.replay import Verdicts
from orchestrator.cli.context import Command, command
from orchestrator.cli.errors import BadUsage, CliError
from orchestrator.cli.grade_commands import EngineOption, SizeOption, grading_service, wait_graded
from orchestrator.cli.output import JsonFlag, facts, table
from orchestrator.cli.run_commands import raise_for
from orchestrator.cli.text import clean

SHOWN = 20


def replay(
    archive: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="A result.tar.gz or error.tar.gz of a run.")],
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
            manifest, verdicts, files = _unpacked(archive, Path(folder))
        except BadArchive as error:
            raise CliError(clean(error)) from error
        if verdicts.digest != manifest["grading_digest"]:
            raise CliError(f"The verdicts in {clean(archive)} are not those of its grading digest.")
        with command(as_json) as cmd, grading_service(cmd, engine) as (place, is_own):
            _check_packs(place, verdicts, files)
            runs, items = _graded(place, files, instance_type, is_own=is_own)
            digest, moved, kept = verdicts.now(items)
            answer = {
                "archive": str(archive),
                "run_id": manifest["run_id"],
                "replayed_as": [run["id"] for run in runs],
                "verdicts": len(verdicts.then),
                "not_graded_again": kept,
                "grading_digest": manifest["grading_digest"],
                "replayed_digest": digest,
                "same": digest == manifest["grading_digest"],
                "moved": [asdict(each) for each in moved],
            }
            cmd.out.result(answer, lambda: facts(_shown(answer)))
            if moved and not as_json:
                columns = ("Problem", "Sample", "Before", "Now", "Official way before", "Now")
                rows = [(m.problem_id, m.sample_index, m.before, m.after, m.parity_before or "–", m.parity_after or "–")
                        for m in moved[:SHOWN]]  # fmt: skip
                cmd.out.console.print(table(columns, rows))
            raise_for(runs)
            if not answer["same"]:
                raise CliError(f"{len(moved)} of {len(verdicts.then)} verdicts moved: the digest is another one.")


def _unpacked(archive: Path, folder: Path) -> tuple[dict[str, Any], Verdicts, dict[str, Path]]:
    """The manifest, the verdicts, and for each benchmark a file with the answers that can be graded again."""
    from orchestrator.grading.answers import answer_of_item

    found = Verdicts()
    files: dict[str, Path] = {}
    with ExitStack() as stack:
        writers: dict[str, TextIO] = {}

        def take(item: dict[str, Any]) -> None:
            try:
                if not found.add(item) or item.get("without_texts"):
                    return
                name, answer = str(item["benchmark"]), answer_of_item(item)
            except (KeyError, TypeError, ValueError) as error:
                raise BadArchive(f"A line of the archive's results cannot be understood ({error!r}).") from error
            if answer is None:
                return
            if name not in writers:
                files[name] = folder / f"{len(files)}.jsonl.gz"
                writers[name] = stack.enter_context(gzip.open(files[name], "wt", compresslevel=1))
            one = {"code": answer.code} if answer.code is not None else {"answer": answer.text}
            row = {"problem_id": item["problem_id"], "sample_index": answer.sample_index, "finish": answer.finish, **one}
            writers[name].write(json.dumps(row) + "\n")

        manifest = read_archive(archive, take)
    return manifest, found.with_packs(manifest), files


def _check_packs(cmd: Command, verdicts: Verdicts, files: dict[str, Path]) -> None:
    """Before anything is started: the tests must be those of then."""
    if not files:
        raise CliError("The archive holds no answer that could be graded again.")
    here = {each["name"]: each["pack_digest"] for each in cmd.client.benchmarks()}
    for name in files:
        wanted = verdicts.packs.get(name, ("", ""))[0]
        if here.get(name) != wanted:
            have = f"the one here is {here[name]}" if name in here else "there is none here"
            raise CliError(f"The archive was graded with the dataset {clean(name)} ({clean(wanted)}); {have}. Add that one.")


def _graded(
    cmd: Command, files: dict[str, Path], instance_type: str | None, *, is_own: bool
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    made = [cmd.client.grade(path, benchmark=name, instance_type=instance_type) for name, path in files.items()]
    for accepted in made:
        cmd.out.note(f"{accepted['answers']} answers of {clean(accepted['benchmark'])} are graded again.")
    runs = wait_graded(cmd, [accepted["run_id"] for accepted in made], is_own=is_own)
    return runs, [item for run in runs for item in cmd.client.items(str(run["id"]))]


def _shown(answer: dict[str, Any]) -> list[tuple[str, object]]:
    kept = answer["not_graded_again"]
    return [
        ("Run", answer["run_id"]),
        ("Verdicts", f"{answer['verdicts'] - len(answer['moved'])} of {answer['verdicts']} are the same"),
        ("Not again", f"{kept} have no whole answer and stay as they were" if kept else ""),
        ("Digest", answer["grading_digest"]),
        ("Now", "the same" if answer["same"] else answer["replayed_digest"]),
    ]
