"""Commands in the documents: those at the root, and docs/*.md.

Every code block says what it is: ```sh is executed by tests/e2e/test_document_blocks.py, as printed and in the order of the
page; ```sh not-run: REASON is not, and says why; any other language is no command.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
NOT_RUN = re.compile(r"sh not-run: (\S.+)")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    info: str
    """What stands after the opening backticks."""
    text: str

    @property
    def is_shell(self) -> bool:
        return self.info.split(" ")[0] == "sh"

    @property
    def is_run(self) -> bool:
        return self.info in ("sh", "python run")

    @property
    def script(self) -> str:
        """What a shell executes."""
        return self.text if self.is_shell else f"python - <<'END OF BLOCK'\n{self.text}END OF BLOCK\n"

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    opened: tuple[int, str, list[str]] | None = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if opened is not None and line.strip() == "```":
            begin, info, lines = opened
            found.append(Block(page, begin, info, "\n".join(lines) + "\n"))
            opened = None
        elif opened is not None:
            opened[2].append(line)
        elif line.startswith("```"):
            opened = (number, line.removeprefix("```").strip(), [])
    assert opened is None, f"{page.name}: the block of line {opened[0]} is not closed" if opened else ""
    return found


def every_block() -> list[Block]:
    return [block for page in PAGES for block in blocks(page)]


def spans(page: Path) -> list[str]:
    """Code within sentences, outside of blocks."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
