"""Finding the program in what models write."""

from __future__ import annotations

import time

import pytest

from runner.rules.extraction import Rule, extract_code, without_thinking

F = "```"
CASES: dict[str, tuple[str, str | None, Rule, bool]] = {
    "one block": (f"Here:\n{F}python\nprint(1)\n{F}\nDone.", "print(1)", Rule.PYTHON_BLOCK, True),
    "the last one": (f"{F}python\nold\n{F}\nbetter:\n{F}py\nnew\n{F}", "new", Rule.PYTHON_BLOCK, True),
    "sample output behind": (f"{F}python\ncode\n{F}\nprints\n{F}\n3\n{F}", "code", Rule.PYTHON_BLOCK, True),
    "text behind": (f"{F}python\ncode\n{F}\n{F}text\n3\n{F}", "code", Rule.PYTHON_BLOCK, True),
    "no language": (f"{F}\nx = 1\n{F}", "x = 1", Rule.PLAIN_BLOCK, True),
    "another language": (f"{F}cpp\nint x;\n{F}", "int x;", Rule.OTHER_BLOCK, True),
    "tildes": ("~~~python\nx\n~~~", "x", Rule.PYTHON_BLOCK, True),
    "fence in a fence": (f"{F}`python\ns = '''\n{F}\n'''\n{F}`", f"s = '''\n{F}\n'''", Rule.PYTHON_BLOCK, True),
    "in a list": (f"1. Code:\n   {F}python\n   if x:\n       y\n   {F}", "if x:\n    y", Rule.PYTHON_BLOCK, True),
    "capitals and attributes": (f"{F}Python title=a\nx\n{F}", "x", Rule.PYTHON_BLOCK, True),
    "first never closed": (f"{F}\nnotes\n{F}python\nx\n{F}", "x", Rule.PYTHON_BLOCK, True),
    "never closed": (f"Look:\n{F}python\nx = 1\ny", "x = 1\ny", Rule.OPEN_BLOCK, False),
    "whole one, then an open one": (f"{F}python\nx\n{F}\n{F}python\ny", "x", Rule.PYTHON_BLOCK, False),
    "carriage returns": (f"{F}python\r\nx = 1\r\n{F}\r\n", "x = 1\r", Rule.PYTHON_BLOCK, True),
    "empty block": (f"{F}python\n\n{F}", None, Rule.NONE, True),
    "bare program": ("import sys\nprint(sys.argv)\n", "import sys\nprint(sys.argv)\n", Rule.BARE_CODE, True),
    "prose": ("I cannot solve this.", None, Rule.NONE, True),
    "a number": ("42", None, Rule.NONE, True),
    "a word that parses": ("impossible", None, Rule.NONE, True),
    "backticks in a line": (f"Use {F} to quote.\n{F}x{F}", None, Rule.NONE, True),
    "nothing": ("", None, Rule.NONE, True),
    "code only in thinking": (f"<think>\n{F}python\nx\n{F}\n</think>\nSorry.", None, Rule.NONE, True),
    "thinking without end": (f"<think>\n{F}python\nx\n{F}\n", None, Rule.NONE, True),
    "thinking and answer": (f"<think>{F}python\nx\n</think>\n{F}python\ny\n{F}", "y", Rule.PYTHON_BLOCK, True),
}  # fmt: skip


@pytest.mark.parametrize(("text", "code", "rule", "complete"), CASES.values(), ids=CASES)
def test_extraction(text: str, code: str | None, rule: Rule, complete: bool) -> None:
    got = extract_code(text)
    assert (got.code, got.rule, got.complete) == (code, rule, complete)


def test_the_function_that_tests_call_is_looked_for() -> None:
    text = f"{F}python\nclass Solution:\n    def go(self): ...\n{F}\nTry it:\n{F}python\nprint(Solution().go())\n{F}"
    assert extract_code(text, "go").rule is Rule.ENTRY_BLOCK
    assert (extract_code(text, "go").code or "").startswith("class")
    assert extract_code(text, "other").code == "print(Solution().go())"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>a</think>b", "b"),
        ("a</think>b", "b"),
        ("a<think>b", "a"),
        ("<think>a</think>b<think>c</think>d", "bd"),
        ("<thinking>a</thinking>b", "b"),
        ("plain", "plain"),
    ],
)
def test_thinking_is_removed(text: str, left: str) -> None:
    assert without_thinking(text) == left


HOSTILE = {
    "fences": f"{F}\n" * 100_000,
    "backticks": "`" * 1_000_000,
    "fence and backtick": f"{F}{'a' * 1_000_000}`",
    "think": "<think>" * 100_000,
    "closed think": "<think></think>" * 100_000,
    "open after open": f"{F}python\n" * 100_000,
    "spaces": " " * 1_000_000 + F,
    "parentheses": "print(" * 10_000,
    "minus": "x = " + "-" * 90_000 + "1",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_cost_little(text: str) -> None:
    began = time.process_time()
    extract_code(text, "f")
    assert time.process_time() - began < 2
