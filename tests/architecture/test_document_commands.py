"""Commands in the documents exist, with the options they are given; each block is run by a test or says why not."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from orchestrator.cli.main import app
from tests.document_commands import NOT_RUN, PAGES, ROOT, Block, every_block, spans

COMMAND: Any = typer.main.get_command(app)
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
ENDS = re.compile(r"\s(?:\||>|<|&&|;|#)(?:\s|$)")


@pytest.mark.parametrize("block", every_block(), ids=str)
def test_a_block_says_what_it_is(block: Block) -> None:
    assert block.info, f"{block}: write ```sh (it is run), ```sh not-run: REASON, or another language (text, json, ...)"
    assert "`" not in block.info, "Markdown allows no backtick there"
    if block.is_shell:
        assert block.is_run or NOT_RUN.fullmatch(block.info), f"{block}: after sh comes nothing, or not-run: REASON"
        for path in re.findall(r"tests/[\w/.]+\.py", block.info):
            assert (ROOT / path).exists(), f"{block} names {path}"


def lines() -> list[tuple[str, str]]:
    """Everything that somebody could type: a line of a shell block, or code in a sentence."""
    found = [
        (str(block), line.strip()) for block in every_block() if block.is_shell for line in _joined(block.text).splitlines()
    ]
    now = [page for page in PAGES if page.name != "CHANGELOG.md"]  # which may name what is gone
    return found + [(page.name, span) for page in now for span in spans(page)]


def _joined(text: str) -> str:
    return re.sub(r"<<'?EOF'?.*?^EOF$", "", text.replace("\\\n", " "), flags=re.MULTILINE | re.DOTALL)


def typed(program: str) -> list[tuple[str, str]]:
    """Where, and what follows the program's name."""
    pattern = re.compile(rf"(?:^|\s)(?:\.venv/bin/)?{program}(?=\s|$)(.*)")
    return [(where, match[1].strip()) for where, line in lines() if (match := pattern.search(_within(line)))]


def _within(line: str) -> str:
    """What a tool of the cluster is told to run in a pod. Its own arguments may be names of ours."""
    return line.partition(" -- ")[2] if re.match(r"(kubectl|helm|kind) ", line) else line


def test_every_command_of_ours_exists_with_its_options() -> None:
    seen = 0
    for where, rest in typed("benchyard"):
        words = _words(rest)
        if words is None:
            continue
        seen += 1
        command, path = COMMAND, "benchyard"
        while words and words[0].startswith("--workspace"):
            words = words[2:]
        while hasattr(command, "commands") and words and not words[0].startswith("-"):
            assert words[0] in command.commands, f"{where}: there is no `{path} {words[0]}`"
            path, command, words = f"{path} {words[0]}", command.commands[words[0]], words[1:]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        given = words[: words.index("--")] if "--" in words else words
        for word in given:
            if re.fullmatch(r"--?[a-z][\w-]*(=.*)?", word):
                assert word.partition("=")[0] in known | {"--help"}, f"{where}: `{path}` has no {word}"
    assert seen > 50


def _words(rest: str) -> list[str] | None:
    """The arguments; None for what is no command line, such as `benchyard ...`."""
    cut = ENDS.split(f" {rest} ", maxsplit=1)[0]
    if "..." in cut.split()[:1] or not cut.strip() or cut.strip()[0] in ".,:)":
        return None
    try:
        return shlex.split(cut)
    except ValueError:
        return None


def test_every_target_of_make_exists() -> None:
    found = [(where, word) for where, rest in typed("make") for word in rest.split()[:1]]
    assert len(found) > 5
    for where, word in found:
        if re.fullmatch(r"[a-z][a-z-]+", word):
            assert word in TARGETS, f"{where}: there is no `make {word}`"


def test_every_script_exists() -> None:
    named = [(where, match) for where, line in lines() for match in re.findall(r"(?<![\w/.])scripts/[a-z_-]+", line)]
    assert named
    for where, path in named:
        assert Path(ROOT, path).exists(), f"{where}: {path} is not there"
