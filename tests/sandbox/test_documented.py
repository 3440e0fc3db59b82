"""The document says what the code does: every ending, level, suite size and command is in it."""

from dataclasses import replace
from pathlib import Path

import pytest

from runner.sandbox.level import Level
from runner.sandbox.outcome import Ending
from tests.sandbox.cheats import CHEATS
from tests.sandbox.hostile import HOSTILE
from tests.sandbox.ordinary import ORDINARY

TEXT = (Path(__file__).parents[2] / "docs/sandbox.md").read_text()
LEVELS = [Level(uid, abi, "files-by-landlock", True, False).name for uid in (True, False) for abi in (0, 7)]


@pytest.mark.parametrize("word", [*(f"| `{ending}` |" for ending in Ending), *(f"| `{level}` |" for level in LEVELS)])
def test_every_ending_and_level_is_explained(word: str) -> None:
    assert word in TEXT


def test_suite_sizes_are_true() -> None:
    sizes = f"`hostile/` ({len(HOSTILE)} programs", f"`cheats/` ({len(CHEATS)})", f"`ordinary/` ({len(ORDINARY)} idioms)"
    assert [size for size in sizes if size not in TEXT.replace("\n", " ")] == []


def test_levels_say_what_is_missing() -> None:
    weak = Level(uid=False, landlock=0, seccomp="no-open", rlimits=True)
    assert "no separate user id" in weak.sentence
    assert "no Landlock" in str(weak)
    assert "(no writable cgroup)" in replace(weak, no_cgroup="no writable cgroup").sentence
    assert Level(True, 7, "files-by-landlock", True, "version 2").sentence.endswith("own cgroup per execution (version 2).")
    assert Level(False, 0, "off", False).name == "none"
