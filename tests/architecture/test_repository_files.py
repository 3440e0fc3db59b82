"""The files at the root that people expect agree with the tree: versions, owners, links, hooks."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_newest_release_of_the_changelog_is_the_packages_version() -> None:
    releases = re.findall(r"^## (\d+\.\d+\.\d+) - (\d{4}-\d{2}-\d{2})$", CHANGELOG, re.MULTILINE)
    assert releases[0][0] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert [day for _, day in releases] == sorted((day for _, day in releases), reverse=True)
    headings = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
    assert headings == ["Unreleased", *(f"{version} - {day}" for version, day in releases)]


def test_every_entry_of_the_changelog_says_what_kind_of_change_it_is() -> None:
    for release in re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[1:]:
        before, *sections = re.split(r"^### ", release, flags=re.MULTILINE)
        assert not re.search(r"^- ", before, re.MULTILINE), f"an entry without a heading in {before.splitlines()[0]}"
        kinds = [section.splitlines()[0] for section in sections]
        assert set(kinds) <= KINDS
        assert len(kinds) == len(set(kinds))


def test_every_room_has_an_owner() -> None:
    owned = set(
        re.findall(r"^/((?:orchestrator|runner|tests)/[a-z0-9_/]*)\s+@", (ROOT / ".github/CODEOWNERS").read_text(), re.M)
    )
    assert not [path for path in owned if not (ROOT / path).is_dir()]
    general = {"orchestrator/system/"}  # the last resort: `*`
    rooms = {f"orchestrator/{path.parent.name}/" for path in (ROOT / "orchestrator").glob("*/__init__.py")}
    assert rooms - owned == general


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / name).read_text()):
        assert (ROOT / target).exists(), f"{name} links to {target}"


def test_the_hooks_are_the_checks_of_make() -> None:
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    makefile = (ROOT / "Makefile").read_text()
    names = re.search(r"^checks := (.*)$", makefile, re.MULTILINE)
    assert names
    recipes = [re.search(rf"^{name}:\n((?:\t.*\n)+)", makefile, re.MULTILINE) for name in names[1].split()]
    tools = {line.split()[0].removeprefix("@$(bin)/") for recipe in recipes if recipe for line in recipe[1].splitlines()}
    assert {Path(hook["entry"].split()[0]).name for hook in local["hooks"]} == tools
