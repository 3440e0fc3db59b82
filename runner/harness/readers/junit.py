"""JUnit XML: an item is one test case, named `classname::name`. Failures and errors score 0; skipped tests are no items.

A file with a document type is refused, so that no entity is ever expanded.
"""

from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO
from xml.parsers import expat

from runner.harness.readers.item import HarnessItem, Progress, Unreadable

PIECE = 1 << 16
MAX_DEPTH = 50
MAX_TEXT = 200_000
BAD = ("failure", "error")
TEXTS = (*BAD, "system-out", "system-err")


def read(file: BinaryIO, name: str, progress: Progress) -> Iterator[HarnessItem]:
    report = _Report()
    while piece := file.read(PIECE):
        yield from report.feed(piece)
    yield from report.feed(b"", last=True)


class _Report:
    def __init__(self) -> None:
        self._parser = expat.ParserCreate()
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.EntityDeclHandler = self._refuse
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._path: list[str] = []
        self._case: dict[str, str] | None = None
        self._texts: dict[str, list[str]] = {}
        self._size = 0
        self._score: float | None = 1.0
        self._times: Counter[str] = Counter()
        self._items: list[HarnessItem] = []

    def feed(self, piece: bytes, *, last: bool = False) -> list[HarnessItem]:
        try:
            self._parser.Parse(piece, last)
        except expat.ExpatError as error:
            raise Unreadable(f"it is not XML: {error}") from None
        items, self._items = self._items, []
        return items

    def _refuse(self, *_: object) -> None:
        raise Unreadable("it has a document type, which a report does not need")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._path.append(name)
        if len(self._path) > MAX_DEPTH:
            raise Unreadable(f"it is nested more than {MAX_DEPTH} deep")
        if name == "testcase":
            self._case, self._texts, self._size, self._score = attributes, {}, 0, 1.0
        elif self._case is not None and name in BAD:
            self._score = 0.0
            self._add(name, attributes.get("message", "") + "\n")
        elif self._case is not None and name == "skipped":
            self._score = None

    def _text(self, text: str) -> None:
        if self._case is not None and self._path[-1] in TEXTS:
            self._add(self._path[-1], text)

    def _add(self, name: str, text: str) -> None:
        if self._size < MAX_TEXT:
            self._size += len(text)
            self._texts.setdefault(name, []).append(text)

    def _end(self, name: str) -> None:
        self._path.pop()
        if name != "testcase" or self._case is None:
            return
        case, self._case = self._case, None
        if self._score is None:
            return
        test = "::".join(filter(None, (case.get("classname", ""), case.get("name", ""))))
        said = {name: "".join(parts).strip() for name, parts in self._texts.items()}
        self._items.append(
            HarnessItem(
                id=test,
                score=self._score,
                sample_index=self._times[test],
                output="\n".join(filter(None, (said.get("system-out"), said.get("system-err")))),
                reason="\n".join(filter(None, (said.get(name) for name in BAD))),
            )
        )
        self._times[test] += 1
