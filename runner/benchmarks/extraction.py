"""Finding the program in a model's text. Pure and linear in the text; the rule that fired is part of the result.

Thinking is removed first. Then the last fenced block that fits wins, in the order of `Rule`. A fence may be of three or more
backticks or tildes; a block that is never closed counts as cut off.
"""

import ast
import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from runner.contract.parsing import MOST_CHARS, parse

PYTHON = frozenset({"python", "python3", "py", "py3", "python2", "pypy", "pypy3"})
MAX_TEXT_CHARS = 4_000_000
"""Of a longer text only the end is searched: no honest answer is as long."""
SHORT_CHARS = 64_000
"""Searched at once: a thread would take longer."""
SEARCH_S = 60.0
CODE_LINE = re.compile(r"(import|from|def|class|print|for|while|if|with|try|async|@|\w+\s*=[^=])")


class Rule(StrEnum):
    """How the program was found."""

    ENTRY_BLOCK = "entry_block"  #: the last block that defines the function which the tests call
    PYTHON_BLOCK = "python_block"  #: the last block marked as Python
    PLAIN_BLOCK = "plain_block"  #: the last block without a language
    OTHER_BLOCK = "other_block"  #: the last block, marked as something else
    OPEN_BLOCK = "open_block"  #: a block that begins and is never closed
    BARE_CODE = "bare_code"  #: no fence at all, but the whole text is a Python program
    GIVEN = "given"  #: stored as a program: nothing to find
    NONE = "none"  #: nothing found


@dataclass(frozen=True)
class Extraction:
    """`code` is None when nothing was found; `complete` says that the text did not end inside the last block."""

    code: str | None
    rule: StrEnum
    complete: bool = True


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    closed: bool


def without_thinking(text: str) -> str:
    """The text without `<think>` sections: closed ones, one that never ends, and one whose beginning is not shown."""
    text = text[-MAX_TEXT_CHARS:]
    for tag in ("think", "thinking"):
        begin, end = f"<{tag}>", f"</{tag}>"
        head, found, tail = text.partition(end)
        if found and begin not in head:
            text = tail
        kept: list[str] = []
        at = 0
        while (opened := text.find(begin, at)) >= 0:
            kept.append(text[at:opened])
            closed = text.find(end, opened)
            at = closed + len(end) if closed >= 0 else len(text)
        text = "".join([*kept, text[at:]])
    return text


def blocks_of(text: str) -> list[Block]:
    """All fenced blocks in order. A fence that names Python begins a block even where another was never closed."""
    blocks: list[Block] = []
    fence, indent, language = "", 0, ""
    lines: list[str] = []
    for line in text.split("\n"):
        marks, word = _fence(line)
        if marks and (not fence or (word in PYTHON and marks[0] == fence[0])):
            fence, language, lines = marks, word, []
            indent = len(line) - len(line.lstrip())
        elif fence and marks.startswith(fence) and not word:
            blocks.append(Block(language, "\n".join(lines), closed=True))
            fence = ""
        else:
            lines.append(line[min(indent, len(line) - len(line.lstrip())) :])
    if fence:
        blocks.append(Block(language, "\n".join(lines), closed=False))
    return blocks


def _fence(line: str) -> tuple[str, str]:
    """The marks of a fence line and the first word behind them; no marks if it is none."""
    line = line.strip()
    if not line.startswith(("```", "~~~")):
        return "", ""
    rest = line.lstrip(line[0])
    if line[0] in rest:
        return "", ""
    word = rest.split(maxsplit=1)[0] if rest.strip() else ""
    return line[: len(line) - len(rest)], word.lower().strip("{}.:,")


def extract_code(text: str, entry: str | None = None) -> Extraction:
    """The program in the text; `entry` is the name of the function that the tests call, if they call one."""
    text = without_thinking(text)
    blocks = blocks_of(text)
    complete = not blocks or blocks[-1].closed
    closed = [block for block in blocks if block.closed and block.code.strip()]
    if entry:
        # Blanks and tabs only: what also matches line ends is tried from every line to the end of an empty stretch.
        defines = re.compile(rf"^[ \t]*(?:async[ \t]+)?def[ \t]+{re.escape(entry)}\b", re.MULTILINE)
        for block in reversed(closed):
            if block.language in PYTHON | {""} and defines.search(block.code):
                return Extraction(block.code, Rule.ENTRY_BLOCK, complete)
    for rule, fits in (
        (Rule.PYTHON_BLOCK, PYTHON),
        (Rule.PLAIN_BLOCK, frozenset({""})),
    ):
        for block in reversed(closed):
            if block.language in fits:
                return Extraction(block.code, rule, complete)
    if blocks and not blocks[-1].closed and blocks[-1].code.strip():
        return Extraction(blocks[-1].code, Rule.OPEN_BLOCK, complete=False)
    if closed:
        return Extraction(closed[-1].code, Rule.OTHER_BLOCK, complete)
    if not blocks and _is_program(text):
        return Extraction(text, Rule.BARE_CODE)
    return Extraction(None, Rule.NONE, complete)


async def search(extract: Callable[[str], Extraction], text: str, *, within_s: float = SEARCH_S) -> Extraction:
    """What `extract` finds in the text; nothing if that takes too long. A long text is searched in a thread."""
    if len(text) <= SHORT_CHARS:
        return extract(text)
    try:
        async with asyncio.timeout(within_s):
            return await asyncio.to_thread(extract, text)
    except TimeoutError:
        return Extraction(None, Rule.NONE)


def _is_program(text: str) -> bool:
    """Is the whole text a Python program, and not a word or two that happen to parse?"""
    if len(text) > MOST_CHARS or not any(CODE_LINE.match(line) for line in text.split("\n")):
        return False
    try:
        tree = parse(text)
    except SyntaxError:
        return False
    return any(not isinstance(node, ast.Expr) or isinstance(node.value, ast.Call) for node in tree.body)
