"""Finds the program in a model's text. Pure and linear in the text; the result names the rule that matched.

Thinking is removed first. Then the last matching fenced block wins, in the order of `Rule`. A fence has three or more
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
"""Only the end of a longer text is searched; no honest answer is that long."""
SHORT_CHARS = 64_000
"""Texts up to this length are searched directly: a thread would take longer."""
SEARCH_S = 60.0
CODE_LINE = re.compile(r"(import|from|def|class|print|for|while|if|with|try|async|@|\w+\s*=[^=])")


class Rule(StrEnum):
    """How the program was found."""

    ENTRY_BLOCK = "entry_block"  #: the last block that defines the function under test
    PYTHON_BLOCK = "python_block"  #: the last block marked as Python
    PLAIN_BLOCK = "plain_block"  #: the last block without a language
    OTHER_BLOCK = "other_block"  #: the last block, marked as another language
    OPEN_BLOCK = "open_block"  #: a block that is never closed
    BARE_CODE = "bare_code"  #: no fence, but the whole text is a Python program
    GIVEN = "given"  #: the stored answer is a program already
    NONE = "none"  #: nothing found


@dataclass(frozen=True)
class Extraction:
    """`code` is None if nothing was found; `complete` is False if the text ends inside its last block."""

    code: str | None
    rule: StrEnum
    complete: bool = True


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    closed: bool


def without_thinking(text: str) -> str:
    """Removes `<think>` sections: closed ones, one that never ends, and one whose opening tag is missing."""
    text = text[-MAX_TEXT_CHARS:]
    for tag in ("think", "thinking"):
        begin, end = f"<{tag}>", f"</{tag}>"
        head, separator, tail = text.partition(end)
        if separator and begin not in head:
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
    """Returns all fenced blocks in order. A fence that names Python starts a block even inside an unclosed one."""
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
    """Returns the marks of a fence line and the first word after them; no marks if the line is no fence."""
    line = line.strip()
    if not line.startswith(("```", "~~~")):
        return "", ""
    rest = line.lstrip(line[0])
    if line[0] in rest:
        return "", ""
    word = rest.split(maxsplit=1)[0] if rest.strip() else ""
    return line[: len(line) - len(rest)], word.lower().strip("{}.:,")


def extract_code(text: str, entry: str | None = None) -> Extraction:
    """Returns the program in the text; `entry` is the name of the function that the tests call, if any."""
    text = without_thinking(text)
    blocks = blocks_of(text)
    complete = not blocks or blocks[-1].closed
    closed = [block for block in blocks if block.closed and block.code.strip()]
    if entry:
        # Blanks and tabs only: a class that includes line ends would be quadratic in a run of empty lines.
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
    """Returns what `extract` finds, or nothing if it takes too long. A long text is searched in a thread."""
    if len(text) <= SHORT_CHARS:
        return extract(text)
    try:
        async with asyncio.timeout(within_s):
            return await asyncio.to_thread(extract, text)
    except TimeoutError:
        return Extraction(None, Rule.NONE)


def _is_program(text: str) -> bool:
    """Whether the whole text is a Python program, and not just a few words that happen to parse."""
    if len(text) > MOST_CHARS or not any(CODE_LINE.match(line) for line in text.split("\n")):
        return False
    try:
        tree = parse(text)
    except SyntaxError:
        return False
    return any(not isinstance(node, ast.Expr) or isinstance(node.value, ast.Call) for node in tree.body)
