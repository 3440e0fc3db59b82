"""docs/cli.md names every command, option and exit code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from orchestrator.cli import errors
from orchestrator.cli.main import app

DOCUMENT = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


def commands(group: Any, prefix: str = "benchyard") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        yield f"{prefix} {name}", command
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix} {name}")


ALL = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("name", ALL)
def test_every_command_is_documented_with_its_options(name: str) -> None:
    assert f"`{name}" in DOCUMENT
    section = DOCUMENT.split(f"`{name}", 1)[1].split("\n## ", 1)[0]
    for parameter in ALL[name].params:
        for option in parameter.opts:
            if option.startswith("--") and option not in ("--help", "--json"):
                assert f"`{option}" in section, option


@pytest.mark.parametrize("name", [name for name in ALL if name not in ("benchyard serve", "benchyard agent")])
def test_every_command_can_print_json(name: str) -> None:
    assert any("--json" in parameter.opts for parameter in ALL[name].params)


@pytest.mark.parametrize(
    "code", sorted({kind.exit_code for kind in errors.CliError.__subclasses__()} | {0, 1, errors.INTERRUPTED})
)
def test_every_exit_code_is_documented(code: int) -> None:
    assert f"| {code} |" in DOCUMENT
