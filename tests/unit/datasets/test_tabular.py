"""Records from files of every kind and packing: the same rows, readable positions, and a reason for what cannot be read."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.formats import delimited
from orchestrator.datasets.formats.json_array import json_items
from orchestrator.datasets.formats.rows import LeftOut, Row
from orchestrator.datasets.formats.source import Source
from orchestrator.datasets.formats.tabular import columns, read_rows, rows_of
from orchestrator.system.zstd import compress

ROWS = [{"id": "1", "question": "two\nlines, and a comma"}, {"id": "2", "question": 'a "quote" é'}]


def as_csv(separator: str) -> bytes:
    lines = [separator.join(("id", "question"))]
    lines += [separator.join((row["id"], '"' + row["question"].replace('"', '""') + '"')) for row in ROWS]
    return "\r\n".join(lines).encode()


def as_parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), out)
    return out.getvalue()


def zipped(name: str, content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.md", "what it is")
        archive.writestr(f"data/{name}", content)
    return out.getvalue()


KINDS: dict[str, bytes] = {
    "x.jsonl": "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS).encode(),
    "x.json": json.dumps(ROWS, indent=1).encode(),
    "x.csv": as_csv(","),
    "x.tsv": as_csv("\t"),
    "semicolons.csv": as_csv(";"),
    "bom.csv": b"\xef\xbb\xbf" + as_csv(","),
    "bom.json": b"\xef\xbb\xbf" + json.dumps(ROWS).encode(),
    "utf16.csv": as_csv(",").decode().encode("utf-16"),
    "x.parquet": as_parquet(),
}
PACKINGS: dict[str, Callable[[str, bytes], bytes]] = {
    "": lambda _, content: content,
    ".gz": lambda _, content: gzip.compress(content),
    ".zst": lambda _, content: compress(content),
    ".zip": zipped,
}


@pytest.mark.parametrize("packing", PACKINGS, ids=[name or "plain" for name in PACKINGS])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_in_every_packing_has_the_same_rows(tmp_path: Path, kind: str, packing: str) -> None:
    path = tmp_path / f"{kind}{packing}"
    path.write_bytes(PACKINGS[packing](kind, KINDS[kind]))
    rows = list(read_rows([path]))
    assert [row.values for row in rows if isinstance(row, Row)] == ROWS
    assert columns(path) == ["id", "question"]
    assert [row.number for row in rows if isinstance(row, Row)] == [1, 2]


@pytest.mark.parametrize(
    ("kind", "position"),
    [
        ("x.jsonl", "x.jsonl line 2"),
        ("x.json", "x.json record 2"),
        ("x.csv", "x.csv row 2"),
        ("x.parquet", "x.parquet row 2"),
    ],
)
def test_positions_can_be_read_and_the_hash_is_that_of_the_file(tmp_path: Path, kind: str, position: str) -> None:
    path = tmp_path / kind
    path.write_bytes(KINDS[kind])
    steps: list[tuple[int, int]] = []
    source = Source(path, lambda *step: steps.append(step))
    rows = list(rows_of(source))
    assert isinstance(rows[1], Row)
    assert rows[1].position == position
    assert source.sha256 == hashlib.sha256(KINDS[kind]).hexdigest()
    assert steps[-1] == (len(KINDS[kind]), len(KINDS[kind]))


def test_several_files_are_read_one_after_another(tmp_path: Path) -> None:
    for name in ("a.csv", "b.jsonl"):
        (tmp_path / name).write_bytes(KINDS["x" + Path(name).suffix])
    rows = list(read_rows([tmp_path / "a.csv", tmp_path / "b.jsonl"]))
    assert [row.position for row in rows if isinstance(row, Row)][1:3] == ["a.csv row 2", "b.jsonl line 1"]


LEFT_OUT: list[tuple[str, bytes, list[str]]] = [
    ("x.csv", b"a,b\n1,2\n1,2,3\n4,5\n", ["x.csv row 2: it has 3 fields, the header has 2"]),
    ("x.csv", b"a,b\n1\n4,5\n", ["x.csv row 1: it has 1 fields, the header has 2"]),
    ("x.csv", b'a,b\n"1"x,2\n4,5\n', ["x.csv row 1: its quotes are wrong"]),
    ("x.csv", b'a,b\n1,2\n3,"open\n', ["x.csv row 2: its quotes are wrong (unexpected end of data)"]),
    ("x.csv", b"a,b\n1,\xff\n4,5\n", ["x.csv row 1: it is not UTF-8 text"]),
    ("x.json", b'[{"a": 1}, 5, {"a": 2}]', ["x.json record 2: not a JSON object"]),
    ("x.jsonl", b'{"a": 1}\n{\n[]\n', ["x.jsonl line 2: not JSON", "x.jsonl line 3: not a JSON object"]),
]


@pytest.mark.parametrize(("name", "content", "reasons"), LEFT_OUT)
def test_a_bad_record_is_left_out_and_the_others_are_read(
    tmp_path: Path, name: str, content: bytes, reasons: list[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    rows = list(read_rows([tmp_path / name]))
    left_out = [str(row) for row in rows if isinstance(row, LeftOut)]
    assert len(left_out) == len(reasons)
    assert all(text.startswith(reason) for text, reason in zip(left_out, reasons, strict=True))
    assert len(rows) > len(left_out)


BAD_FILES: list[tuple[str, bytes, str]] = [
    ("x.csv", b"a,a\n1,2\n", "no two the same"),
    ("x.csv", b"a,,c\n1,2,3\n", "every column needs a name"),
    ("x.csv", b"\n\n\n", "has 0 columns"),
    ("x.csv", b",".join(b"c%d" % n for n in range(10_001)), "has 10001 columns"),
    ("x.json", b'[{"a": 1}', "not JSON after record 1 (the array has no end)"),
    ("x.json", b'[{"a": 1}]]', "something follows the array"),
    ("x.json", b'[{"a": 1}, {"a":' + b"[" * 100_000, "not JSON after record 1"),
    ("x.json", b'[{"a": "\xff\xfe"}]', "not JSON"),
    ("x.zst", compress(b'{"a": 1}\n' * 1000)[:-20], "cut short"),
    ("x.zst", compress(b'{"a": 1}\n' * 1000)[:8] + b"\x00\xff" * 20, "damaged"),
    ("x.zip", zipped("a.txt", b"x"), "has 0 data files"),
    ("x.zip", zipped("a.json", b"[1, 2]" * 50)[:-30], "damaged"),
    ("none.csv", b"", "is empty"),
]


@pytest.mark.parametrize(("name", "content", "why"), BAD_FILES)
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadSource) as error:
        list(read_rows([tmp_path / name]))
    assert why in error.value.detail
    assert "\n" not in error.value.detail


@pytest.mark.parametrize("content", [b'a,b\n1,"' + b"x" * 5000, b"a,b\n" + b"," * 5000, b"a" * 5000])
def test_a_row_without_an_end_is_not_read_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(delimited, "MAX_ROW", 1000)
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(BadSource, match="a quote that is not closed"):
        list(read_rows([tmp_path / "x.csv"]))


def test_an_element_without_an_end_is_not_read_into_memory() -> None:
    taken = 0

    def pieces() -> Any:
        nonlocal taken
        yield '["'
        while taken < 1000:
            taken += 1
            yield "x" * 1000

    with pytest.raises(ValueError, match="no element ends"):
        list(json_items(pieces(), max_item=10_000))
    assert taken < 50


@pytest.mark.parametrize("name", ["bomb.csv", "bomb.json"])
def test_a_cancelled_build_ends_between_rows_of_a_compressed_file(tmp_path: Path, name: str) -> None:
    content = b"a\n" + b"1\n" * 50_000 if name.endswith("csv") else b"[" + b'{"a":1},' * 200_000 + b'{"a":1}]'
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(content))
    calls = 0

    class Cancelled(Exception): ...

    def progress(_done: int, _total: int) -> None:
        nonlocal calls
        calls += 1
        if calls > 5:
            raise Cancelled

    with pytest.raises(Cancelled):
        list(read_rows([path], progress))
