"""Commands about benchmarks: list, show, the catalogue, check and add those that a file describes, remove."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from orchestrator.benchmarks.python_file import constants_of, default_name, is_python
from orchestrator.cli.api.client import UPLOAD_S, Client, Json, given, run_path
from orchestrator.cli.commands.catalogue.datasets import progress_shown, wait_for_dataset
from orchestrator.cli.commands.measuring.runs import raise_for, submit, wait
from orchestrator.cli.context import command, command_group
from orchestrator.cli.errors import BadUsage
from orchestrator.cli.files.batch_config import read_config
from orchestrator.cli.view.datasets import dates_of
from orchestrator.cli.view.output import Columns, JsonFlag, Output, records_table
from orchestrator.cli.view.text import clean, interval, money, percent
from orchestrator.datasets.errors import BadSource

BENCHMARK_COLUMNS: Columns = {
    "Benchmark": lambda row: f"{row['name']} (default)" if row["default"] else row["name"],
    "Problems": "problems",
    "Difficulties": lambda row: ", ".join(f"{count} {name}" for name, count in row["difficulties"].items()),
    "Dates": dates_of,
    "Judge": lambda row: row["judge"] or "",
    "Prompts": lambda row: row["prompt_version"] or row["adapter"],
    "Source": lambda row: row["source"][:40],
    "Licence": "licence",
    "Description": "description",
}
CATALOGUE_COLUMNS: Columns = {
    "Benchmark": lambda row: f"{row['name']} (added)" if row["added"] else row["name"],
    "Problems": "problems",
    "Download": lambda row: f"{row['download_mb']:,g} MB",
    "Licence": lambda row: f"{row['licence']}, gated" if row["gated"] else row["licence"],
    "Description": "description",
}
AGREEMENT_COLUMNS: Columns = {
    "Judge": lambda row: row["judge"] or "rule",
    "Measured": lambda row: str(row["created_at"])[:16].replace("T", " "),
    "Agrees": lambda row: "–" if row["share"] is None else f"{percent(row['share'])} of {row['judged']}",
    "95 % interval": lambda row: "–" if row["share"] is None else interval(row),
    "Kappa": lambda row: "–" if row["kappa"] is None else f"{row['kappa']:.2f}",
    "Wrongly passed": "wrongly_passed",
    "Wrongly failed": "wrongly_failed",
    "No verdict": "unjudged",
    "Cost": lambda row: money(row["cost_usd"]),
    "Run": "run_id",
}
AGREEMENT_NUMBERS = ("Agrees", "95 % interval", "Kappa", "Wrongly passed", "Wrongly failed", "No verdict", "Cost")
TRIED_COLUMNS: Columns = {
    "Problem": "problem_id",
    "Value": lambda row: "–" if row["value"] is None else f"{row['value']:.3g}",
    "Verdict": lambda row: "failed" if row["error"] else "passed" if row["passed"] else "not passed",
    "Reason": lambda row: row["error"] or row["reason"],
}
ITEM_COLUMNS: Columns = {
    "Problem": "problem_id",
    "Value": lambda row: "–" if row["score"] is None else f"{row['score']:.3g}",
    "Outcome": "outcome",
    "Detail": "detail",
}
SHOWN_CHARS = 2000
PAIRS = (("id", "problem_id"), ("text", "answer"))
File = Annotated[Path, typer.Argument(help="The file that describes the benchmark: YAML, JSON, or Python.", metavar="FILE")]
Name = Annotated[str, typer.Argument(help="A benchmark.")]

FileOrName = Annotated[
    str,
    typer.Argument(
        help="The file that describes the benchmark (YAML or JSON), or the name of one in the catalogue.",
        metavar="FILE|NAME",
    ),
]
CatalogueName = Annotated[str | None, typer.Argument(help="Print the file of this benchmark, as a start for your own.")]

benchmarks_app = command_group(
    "Benchmarks: list (the default), show, catalogue of published ones, check and add your own, remove."
)


@benchmarks_app.command("list")
def list_benchmarks(as_json: JsonFlag = False) -> None:
    """List the benchmarks that can be run here."""
    with command(as_json) as cmd:
        cmd.out.items(cmd.client.items("/api/benchmarks"), BENCHMARK_COLUMNS, right=("Problems",))


@benchmarks_app.command("show")
def show_benchmark(name: Name, as_json: JsonFlag = False) -> None:
    """Show a benchmark, and its description if a file describes it."""
    with command(as_json) as cmd:
        found = cmd.client.get(_path(name))
        lines = [f"{clean(found['name'])}: {found['problems']} problems, {clean(found['pack_digest'])}"]
        for label, field in (("Description", "description"), ("Source", "source"), ("Licence", "licence")):
            if found[field]:
                lines.append(f"{label}: {clean(found[field])}")
        if found["prompt_version"]:
            lines.append(f"Prompt version: {clean(found['prompt_version'])}")
        if found["definition"]:
            lines += ["", *_outline(found["definition"])]
        cmd.out.result(found, "\n".join(lines))


@benchmarks_app.command("catalogue")
def show_catalogue(name: CatalogueName = None, as_json: JsonFlag = False) -> None:
    """List published benchmarks that `benchyard benchmarks add NAME` adds, or show one of them."""
    with command(as_json) as cmd:
        if name is None:
            right = ("Problems", "Download")
            cmd.out.items(cmd.client.items("/api/benchmarks/catalogue"), CATALOGUE_COLUMNS, right=right)
            return
        entry = cmd.client.get(_path("catalogue", name))
        cmd.out.result(entry, "\n".join(_catalogue_lines(entry)))


@benchmarks_app.command("check")
def check_benchmark(file: File, as_json: JsonFlag = False) -> None:
    """Show the first three prompts of a description, and how a right and a wrong answer would score. Adds nothing."""
    with command(as_json) as cmd:
        checked = cmd.client.post("/api/benchmarks/check", _body(cmd.client, file), timeout_s=UPLOAD_S)
        _show_check(cmd.out, checked)


@benchmarks_app.command("add")
def add_benchmark(
    file: FileOrName,
    judge: Annotated[
        str | None, typer.Option(help="For a benchmark of the catalogue that a model judges: the model.", metavar="MODEL")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Add a published benchmark of the catalogue, or one that a file describes; one of the same name is replaced."""
    with command(as_json) as cmd:
        if _is_name(file):
            job = cmd.client.post(_path("catalogue", file), given(judge=judge))
        elif judge is not None:
            raise BadUsage("A file names its judge itself; --judge is for benchmarks of the catalogue.")
        else:
            job = cmd.client.post("/api/benchmarks", _body(cmd.client, Path(file)))
        with progress_shown(cmd.out) as report:
            built = wait_for_dataset(cmd.client, job["name"], report)
        cmd.out.warn_some([f"Left out: {clean(line)}" for line in built["left_out_lines"]], built["left_out"])
        name = clean(built["name"])
        cmd.out.result(
            built,
            f"Added {name}: {built['problems']} problems, {clean(built['pack_digest'])}.\n"
            f"Run it: benchyard run --benchmark {name} --model MODEL --sample-size all\n"
            f"Every morning: benchyard schedules set MODEL --benchmark {name} --sample-size {built['problems']} "
            '--cron "0 7 * * *"',
        )


@benchmarks_app.command("agreement")
def show_agreement(
    name: Name,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Another judge, by its slug.")] = None,
    budget: Annotated[float | None, typer.Option(metavar="USD", help="Maximum cost.")] = None,
    only_show: Annotated[bool, typer.Option("--show", help="Show what was measured; ask no judge.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Have the judge grade the labelled answers of a benchmark, and show how far it agrees with people."""
    with command(as_json) as cmd:
        if not only_show:
            sent = cmd.client.post(_path(name) + "/agreement", {"model": model, "budget_usd": budget})
            (run,) = wait(cmd, [sent["run_id"]])
            raise_for([run])
        cmd.out.items(cmd.client.items(_path(name) + "/agreement"), AGREEMENT_COLUMNS, right=AGREEMENT_NUMBERS)


@benchmarks_app.command("try")
def try_benchmark(
    file: File,
    answers: Annotated[
        Path | None, typer.Option("--answers", help="Stored answers to score: JSON lines with `id` and `text`.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="A model to ask instead.")] = None,
    sample_size: Annotated[int, typer.Option("--sample-size", "-n", min=1, help="How many problems it is asked.")] = 3,
    as_json: JsonFlag = False,
) -> None:
    """Try a benchmark on stored answers, or on a few answers of a model, before it is added.

    With --answers, the functions of a Python file score the answers in the sandbox; nothing is stored. With --model, the
    benchmark is added as NAME-trial and run on a few problems.
    """
    if (answers is None) == (model is None):
        raise BadUsage("Name either stored answers with --answers FILE or a model with --model MODEL.")
    with command(as_json) as cmd:
        body = _body(cmd.client, file)
        if answers is not None:
            tried = cmd.client.post("/api/benchmarks/try", {**body, "answers": _answers(answers)}, timeout_s=UPLOAD_S)
            cmd.out.items(tried["items"], TRIED_COLUMNS, right=("Value",))
            return
        trial = f"{_name_of(file, body)[:58]}-trial"
        job = cmd.client.post("/api/benchmarks", {**body, "name": trial})
        wait_for_dataset(cmd.client, job["name"], lambda *_: None)
        request = {"model_id": model, "benchmarks": [trial], "sample_size": sample_size}
        (run,) = wait(cmd, submit(cmd, [request]))
        items = cmd.client.items(f"{run_path(run['id'])}/items")
        cmd.out.result({"run": run, "items": items}, lambda: records_table(items, ITEM_COLUMNS, right=("Value",)))
        raise_for([run])


@benchmarks_app.command("remove")
def remove_benchmark(name: Name, as_json: JsonFlag = False) -> None:
    """Delete a benchmark's problems; results stay."""
    with command(as_json) as cmd:
        cmd.client.delete(f"/api/datasets/{quote(name, safe='')}")
        cmd.out.result({"removed": name}, f"Removed {clean(name)}.")


def _path(*parts: str) -> str:
    return "/".join(["/api/benchmarks", *(quote(part, safe="") for part in parts)])


def _is_name(given: str) -> bool:
    """Whether it is a name of the catalogue: not a file, and nothing that looks like one."""
    return re.fullmatch(r"[a-z][a-z0-9_-]{0,63}", given) is not None and not Path(given).exists()


def _catalogue_lines(entry: Json) -> list[str]:
    """A comment and the file, so that the output can be saved and added."""
    facts = [f"{entry['problems']} problems, about {entry['download_mb']:,g} MB to download"]
    if entry["needs_judge"]:
        facts.append(f"A model judges: benchyard benchmarks add {clean(entry['name'])} --judge MODEL")
    if entry["gated"]:
        facts.append("Gated: accept its terms on the hub, and give the service a token in HF_TOKEN.")
    if entry["differs"]:
        facts.append(f"Differs from the authors' own rules: {clean(entry['differs'])}")
    if entry["text"] is not None:
        return [*(f"# {fact}" for fact in facts), clean(entry["text"], lines=True).rstrip()]
    labels = (("Description", "description"), ("Source", "source"), ("Licence", "licence"))
    return [f"{clean(entry['name'])}: {facts[0]}", *facts[1:], *(f"{label}: {clean(entry[name])}" for label, name in labels)]


def _body(client: Client, file: Path) -> Json:
    """The description, with the files that it names uploaded. Their paths are relative to the description."""
    if is_python(file.name):
        source = _text(file)
        document = _constants(file, source)
        form: Json = {"python": source, "filename": file.name}
    else:
        document = read_config(file)
        form = {"definition": document}
    handles = {}
    for name in _named_files(document):
        path = file.parent / Path(name).expanduser()
        if not path.is_file():
            raise BadUsage(f"{clean(file)} names the file {clean(name)}, and there is no {clean(path)}.")
        handles[name] = client.upload("POST", "/api/benchmarks/files", path, filename=path.name)["file"]
    return {**form, "files": handles}


def _name_of(file: Path, body: Json) -> str:
    given = _constants(file, body["python"]) if "python" in body else body["definition"]
    return str(given.get("name") or default_name(file.name))


def _constants(file: Path, source: str) -> Json:
    """What the constants of a Python file say; it is not executed."""
    try:
        return constants_of(source)[0]
    except BadSource as error:
        raise BadUsage(f"{clean(file)}: {error.detail}") from None


def _answers(file: Path) -> list[Json]:
    """The stored answers, one per line; `problem_id` and `answer` are accepted too."""
    answers = []
    for number, line in enumerate(_text(file).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            problem_id, text = (entry.get(name) or entry.get(other) for name, other in PAIRS)
        except (ValueError, AttributeError):
            problem_id = text = None
        if problem_id is None or not isinstance(text, str):
            raise BadUsage(f'{clean(file)}, line {number} is not of the form {{"id": ..., "text": ...}}.')
        answers.append({"problem_id": str(problem_id), "text": text})
    return answers


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadUsage(f"{clean(file)} cannot be read: {error}.") from None


def _named_files(document: Json) -> list[str]:
    prompt = document.get("prompt")
    examples = prompt.get("examples") if isinstance(prompt, dict) else None
    parts = [document.get("records"), examples.get("records") if isinstance(examples, dict) else None]
    parts.append(document.get("labelled"))
    names: list[str] = []
    for part in parts:
        listed = part.get("files") or part.get("file") if isinstance(part, dict) else part
        names += [listed] if isinstance(listed, str) else [name for name in listed or [] if isinstance(name, str)]
    return list(dict.fromkeys(names))


def _show_check(out: Output, checked: Json) -> None:
    lines = []
    for problem in checked["problems"]:
        lines.append(f"── {clean(problem['id'])}")
        if problem["system"]:
            lines.append(f"[system] {clean(problem['system'], lines=True)[:SHOWN_CHARS]}")
        lines.append(clean(problem["prompt"], lines=True)[:SHOWN_CHARS])
        if problem["target"] is not None:
            lines.append(f"[target] {clean(problem['target'])[:SHOWN_CHARS]}")
        if problem["judge_prompt"]:
            lines.append(f"[judge is asked] {clean(problem['judge_prompt'], lines=True)[:SHOWN_CHARS]}")
        for trial in problem["trials"]:
            verdict = "is no verdict" if trial["kind"] == "unreadable" else "passes" if trial["passed"] else "fails"
            taken = "nothing can be read in it" if trial["taken"] is None else f"taken: {clean(trial['taken'])[:100]}"
            lines.append(f"[{trial['kind']}] {clean(trial['answer'])[:200]!r} {verdict} ({taken})")
        lines.append("")
    out.warn_some([f"Left out: {clean(line)}" for line in checked["left_out"]], len(checked["left_out"]))
    out.result(checked, "\n".join([*lines, f"{clean(checked['name'])}: prompts {clean(checked['prompt_version'])}"]))


def _outline(value: Any, indent: int = 0) -> list[str]:
    """A description as indented lines."""
    pad = "  " * indent
    if not isinstance(value, dict):
        return [pad + line for line in clean(value, lines=True).splitlines() or [""]]
    lines = []
    for name, entry in value.items():
        if isinstance(entry, dict) or (isinstance(entry, str) and "\n" in entry):
            lines += [f"{pad}{clean(name)}:", *_outline(entry, indent + 1)]
        else:
            lines.append(f"{pad}{clean(name)}: {clean(entry)}")
    return lines
