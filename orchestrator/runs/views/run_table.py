"""The list of runs as its address says: filters, sorting, columns, density, page. All is in the address, so a view can
be kept as a link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

COLUMNS = {
    "model": "Model",
    "benchmark": "Benchmark",
    "status": "Status",
    "items": "Items",
    "score": "Score and 95 % interval",
    "cost": "Cost",
    "tokens": "Tokens out",
    "created": "Created",
    "ended": "Ended",
    "took": "Duration",
    "author": "Author",
    "trigger": "Started by",
    "instance": "Instance",
    "note": "Note",
}
USUAL = ("benchmark", "status", "items", "score", "cost", "created", "note")
SORTED_DOWN = frozenset({"created", "score", "cost", "tokens", "items", "ended"})
"""Columns that begin with the largest."""
FILTERS = ("status", "model", "benchmark", "tag", "kind", "trigger", "author")
ACTIVE = ("pending", "starting", "running")
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class TableState:
    """What the address asks for. Values are not checked against what there is: an unknown one finds nothing."""

    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    text: str = ""
    dead: bool = False
    batch: str = ""
    sort: str = "created"
    descending: bool = True
    columns: tuple[str, ...] = USUAL
    compact: bool = False
    page: int = 1

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]]) -> TableState:
        values: dict[str, list[str]] = {}
        for name, value in pairs:
            if value:
                values.setdefault(name, []).append(value[:200])

        def one(name: str) -> str:
            return values.get(name, [""])[-1]

        asked = one("sort")
        asked = asked if asked.removeprefix("-") in (*COLUMNS, "name") else "-created"
        columns = tuple(name for name in COLUMNS if name in values.get("col", ()))
        page = one("page")
        return cls(
            filters={name: tuple(dict.fromkeys(values[name]))[:50] for name in FILTERS if name in values},
            text=one("q"),
            dead=bool(one("dead")),
            batch=one("batch"),
            sort=asked.removeprefix("-"),
            descending=asked.startswith("-"),
            columns=columns or USUAL,
            compact=one("density") == "compact",
            page=int(page) if page.isascii() and page.isdecimal() and 0 < len(page) < 6 and int(page) else 1,
        )

    def has(self, name: str) -> tuple[str, ...]:
        return tuple(self.filters.get(name, ()))

    @property
    def filtered(self) -> bool:
        return bool(self.filters or self.text or self.dead or self.batch)

    def pairs(self, *, without: Sequence[str] = ()) -> Pairs:
        """The address; what is as usual is left out."""
        pairs: Pairs = [(name, value) for name in FILTERS for value in self.has(name)]
        if self.text:
            pairs.append(("q", self.text))
        if self.dead:
            pairs.append(("dead", "1"))
        if self.batch:
            pairs.append(("batch", self.batch))
        if (self.sort, self.descending) != ("created", True):
            pairs.append(("sort", f"{'-' if self.descending else ''}{self.sort}"))
        if self.columns != USUAL:
            pairs += [("col", name) for name in self.columns]
        if self.compact:
            pairs.append(("density", "compact"))
        if self.page > 1:
            pairs.append(("page", str(self.page)))
        return [(name, value) for name, value in pairs if name not in without]

    def query(self, *, without: Sequence[str] = ()) -> str:
        return urlencode(self.pairs(without=without))

    def sorted_by(self, column: str) -> str:
        """The address sorted by this column; the other way round if it is already."""
        descending = not self.descending if self.sort == column else column in SORTED_DOWN
        sort = f"{'-' if descending else ''}{column}"
        rest = self.pairs(without=("sort", "page"))
        return urlencode(rest if sort == "-created" else [*rest, ("sort", sort)])

    def at_page(self, page: int) -> str:
        rest = self.pairs(without=("page",))
        return urlencode(rest if page < 2 else [*rest, ("page", str(page))])

    def chips(self, models: Mapping[str, str]) -> list[tuple[str, str]]:
        """What is filtered by, in words, each with the address without it."""
        chips = []
        for name in FILTERS:
            for value in self.has(name):
                rest = [pair for pair in self.pairs(without=("page",)) if pair != (name, value)]
                chips.append((f"{name}: {models.get(value, value) if name == 'model' else value}", urlencode(rest)))
        for name, words in (("q", f"search: {self.text}"), ("dead", "dead letters"), ("batch", "one batch")):
            if {"q": self.text, "dead": self.dead, "batch": self.batch}[name]:
                chips.append((words, self.query(without=(name, "page"))))
        return chips


def same_address(query: str) -> str:
    """An address that came back from a form, reduced to what the list knows."""
    return TableState.of(parse_qsl(query[:8000], max_num_fields=300)).query()
