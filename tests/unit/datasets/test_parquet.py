"""Parquet files: what becomes of every type of value, and one sentence for every file that is damaged, hostile or a lie."""

from __future__ import annotations

import ast
import io
import os
import random
import signal
import struct
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet import encryption

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.fetching.library import Order, add
from orchestrator.datasets.formats import unpacking
from orchestrator.datasets.formats.parquet import rows as parquet_module
from orchestrator.datasets.formats.parquet import worker
from orchestrator.datasets.formats.parquet.rows import parquet_columns, parquet_rows
from orchestrator.datasets.formats.rows import LeftOut, Row
from orchestrator.datasets.formats.tabular import columns, read_rows
from tests.benchmark_records import gsm8k


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def read(path: Path, data: bytes) -> list[Row | LeftOut]:
    path.write_bytes(data)
    return list(read_rows([path]))


NOON = datetime(2024, 5, 6, 12, 0, 0, 250_000)
VALUES: list[tuple[str, pa.DataType, Any, Any]] = [
    ("text", pa.string(), "é", "é"),
    ("large text", pa.large_string(), "a", "a"),
    ("dictionary", pa.dictionary(pa.int8(), pa.string()), "law", "law"),
    ("null", pa.string(), None, None),
    ("integer", pa.int64(), -(2**63), -(2**63)),
    ("unsigned", pa.uint64(), 2**64 - 1, 2**64 - 1),
    ("float", pa.float64(), 0.1, 0.1),
    ("nan", pa.float64(), float("nan"), None),
    ("infinity", pa.float32(), float("-inf"), None),
    ("boolean", pa.bool_(), True, True),
    ("date", pa.date32(), date(2024, 2, 29), "2024-02-29"),
    ("timestamp", pa.timestamp("ms"), NOON, "2024-05-06T12:00:00.250000"),
    ("timestamp in UTC", pa.timestamp("us", "UTC"), NOON.replace(tzinfo=UTC), "2024-05-06T12:00:00.250000+00:00"),
    ("timestamp elsewhere", pa.timestamp("ns", "Asia/Tokyo"), NOON.replace(tzinfo=UTC), "2024-05-06T12:00:00.250000+00:00"),
    ("time", pa.time64("ns"), time(9, 30), "09:30:00"),
    ("duration", pa.duration("ms"), timedelta(seconds=1.5), 1.5),
    ("decimal", pa.decimal128(20, 2), Decimal("12345678901234567.80"), "12345678901234567.80"),
    ("binary", pa.binary(), b"\x00\xff", "AP8="),
    ("list", pa.list_(pa.string()), ["a", "b"], ["a", "b"]),
    ("empty list", pa.list_(pa.string()), [], []),
    ("fixed list", pa.list_(pa.int32(), 2), [1, 2], [1, 2]),
    ("struct", pa.struct({"a": pa.int32(), "b": pa.list_(pa.date32())}), {"a": 1, "b": [date(2024, 1, 1)]},
     {"a": 1, "b": ["2024-01-01"]}),
    ("list of structs", pa.list_(pa.struct({"input": pa.string(), "at": pa.timestamp("ns")})),
     [{"input": "x", "at": datetime(2024, 1, 1)}], [{"input": "x", "at": "2024-01-01T00:00:00"}]),
    ("map", pa.map_(pa.string(), pa.int32()), [("a", 1), ("b", 2)], {"a": 1, "b": 2}),
]  # fmt: skip


@pytest.mark.parametrize("store_schema", [True, False], ids=["with", "without"])
def test_values_of_every_type(tmp_path: Path, store_schema: bool) -> None:
    """With and without the writer's own types, which pyarrow stores beside those of Parquet."""
    table = pa.table({name: pa.array([value], kind) for name, kind, value, _ in VALUES})
    (row,) = read(tmp_path / "x.parquet", written(table, store_schema=store_schema))
    assert isinstance(row, Row)
    expected = {name: value for name, _, _, value in VALUES}
    if not store_schema:  # Parquet has no durations of its own
        expected["duration"] = 1500
    assert row.values == expected
    assert columns(tmp_path / "x.parquet") == list(expected)


def test_a_value_that_python_cannot_hold_costs_its_row_only(tmp_path: Path) -> None:
    days = pa.array([0, 2**31 - 1, 1], pa.int32()).cast(pa.date32())
    rows = read(tmp_path / "x.parquet", written(pa.table({"day": days})))
    assert [row.values["day"] if isinstance(row, Row) else None for row in rows] == ["1970-01-01", None, "1970-01-02"]
    assert str(rows[1]).startswith("x.parquet row 2: a value cannot be converted")


def test_text_that_is_not_utf8_costs_its_row_only(tmp_path: Path) -> None:
    text = pa.array([b"good", b"\xff\xfe", b"fine"], pa.binary()).view(pa.string())
    rows = read(tmp_path / "x.parquet", written(pa.table({"t": text})))
    assert [isinstance(row, Row) for row in rows] == [True, False, True]


def test_row_numbers_run_through_row_groups_and_batches(tmp_path: Path) -> None:
    rows = read(tmp_path / "x.parquet", written(pa.table({"n": list(range(1, 1001))}), row_group_size=300))
    assert [(row.number, row.values["n"]) for row in rows if isinstance(row, Row)] == [(n, n) for n in range(1, 1001)]


GOOD = written(pa.table({"question": ["?"] * 500, "answer": ["#### 1"] * 500}))
FOOTER = int.from_bytes(GOOD[-8:-4], "little")


def with_footer_size(size: int) -> bytes:
    return GOOD[:-8] + struct.pack("<I", size) + GOOD[-4:]


def scrambled_footer() -> bytes:
    data = bytearray(GOOD)
    data[-8 - FOOTER : -8] = random.Random(1).randbytes(FOOTER)
    return bytes(data)


def damaged_pages() -> bytes:
    data = bytearray(GOOD)
    data[4:60] = random.Random(2).randbytes(56)
    return bytes(data)


class Keys(encryption.KmsClient):  # type: ignore[misc]
    """A key service that does not hide anything."""

    def __init__(self, _config: Any) -> None:
        encryption.KmsClient.__init__(self)

    def wrap_key(self, key_bytes: bytes, _master: str) -> bytes:
        return key_bytes.hex().encode()

    def unwrap_key(self, wrapped: bytes, _master: str) -> bytes:
        return bytes.fromhex(wrapped.decode())


def encrypted(*, footer: bool) -> bytes:
    keys = encryption.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["answer"]}, plaintext_footer=not footer, internal_key_material=True
    )
    properties = encryption.CryptoFactory(Keys).file_encryption_properties(encryption.KmsConnectionConfig(), keys)
    out = io.BytesIO()
    table = pa.table({"question": ["?"], "answer": ["#### 1"]})
    with pq.ParquetWriter(out, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
    return out.getvalue()


def nested(depth: int) -> bytes:
    kind, value = pa.int32(), 1
    for _ in range(depth):
        kind, value = pa.list_(kind), [value]  # type: ignore[assignment]
    return written(pa.table({"x": pa.array([value], kind)}))


BAD_FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "only the beginning": (lambda: b"PAR1", "cut short"),
    "cut in the middle": (lambda: GOOD[: len(GOOD) // 2], "its end is missing"),
    "cut by one byte": (lambda: GOOD[:-1], "its end is missing"),
    "another magic": (lambda: b"XXXX" + GOOD[4:-4] + b"XXXX", "its end is missing"),
    "a web page": (lambda: b"<html>not found</html>", "its end is missing"),
    "a footer larger than the file": (lambda: with_footer_size(2**31), "would be larger than the file"),
    "a footer of nothing": (lambda: with_footer_size(0), "cannot be read as Parquet"),
    "half a footer": (lambda: with_footer_size(FOOTER // 2), "cannot be read as Parquet"),
    "a scrambled footer": (scrambled_footer, "cannot be read as Parquet"),
    "damaged pages": (damaged_pages, "cannot be read as Parquet"),
    "an encrypted footer": (lambda: encrypted(footer=True), "it is encrypted; decrypt it first"),
    "encrypted columns": (lambda: encrypted(footer=False), "it is encrypted; decrypt it first"),
    "too many columns": (lambda: written(pa.table({f"c{n}": [1] for n in range(10_001)})), "has 10001 columns"),
    "two columns of one name": (lambda: written(pa.table([[1], [2]], names=["a", "a"])), "same name"),
    "no columns": (lambda: written(pa.table({})), "has 0 columns"),
    "nested without end": (lambda: nested(40), "cannot be read as Parquet"),
    "no rows": (lambda: written(pa.table({"question": pa.array([], pa.string())})), "no usable problem"),
    "wrong columns": (lambda: written(pa.table({"other": ["x"]})), "row 1: field question is missing or no text"),
    "wrong types": (lambda: written(pa.table({"question": [1], "answer": [2]})), "field question is missing or no text"),
}


@pytest.mark.parametrize(("make", "why"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_file_that_cannot_be_used_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, make: Callable[[], bytes], why: str
) -> None:
    source = tmp_path / "test.parquet"
    source.write_bytes(make())
    with pytest.raises(BadSource) as error:
        add(tmp_path / "data", Order("gsm8k", source=str(source)))
    assert why in error.value.detail
    assert "\n" not in error.value.detail
    assert len(error.value.detail) < 500
    assert list((tmp_path / "data" / "packs").iterdir()) == []


def bomb(text_bytes: int, rows: int) -> bytes:
    return written(pa.table({"question": ["x" * text_bytes] * rows, "answer": ["#### 1"] * rows}), compression="zstd")


def test_few_bytes_that_become_many_rows_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One text in the dictionary, a thousand rows that refer to it."""
    monkeypatch.setattr(unpacking, "ROOM_BYTES", 1 << 20)
    data = bomb(100_000, 1000)
    assert len(data) < 10_000
    with pytest.raises(BadSource, match="unpacks to more than 200 times its size"):
        read(tmp_path / "x.parquet", data)


def test_a_page_that_needs_more_memory_than_allowed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(bomb(100_000_000, 1))
    with path.open("rb") as file, pytest.raises(BadSource, match="it needs more than 200 MiB of memory"):
        list(parquet_rows("x.parquet", file, path.stat().st_size, lambda *_: None, memory_bytes=200 << 20))


def test_a_footer_that_lies_about_the_rows_is_noticed(tmp_path: Path) -> None:
    """The number of rows of the file is stored apart from those of its row groups."""
    told = written(pa.table({"n": pa.array(range(77), pa.int32())}))
    footer = len(told) - 8 - int.from_bytes(told[-8:-4], "little")
    at = told.index(bytes([0x16, 2 * 77 & 0x7F | 0x80, 2 * 77 >> 7]), footer)
    with pytest.raises(BadSource, match=r"cannot be read as Parquet|its footer says"):
        read(tmp_path / "x.parquet", told[: at + 2] + bytes([4]) + told[at + 3 :])


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (-signal.SIGSEGV, "makes the decoder crash (signal 11), so it is damaged or made to do harm"),
        (-signal.SIGABRT, "makes the decoder crash (signal 6)"),
        (-signal.SIGXCPU, "too much processor time"),
        (-signal.SIGKILL, "too much processor time or memory"),
        (1, "ended with code 1"),
    ],
)
def test_a_worker_that_dies_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, why: str) -> None:
    """A real process that dies in the way of a decoder on a hostile file, after some of its rows."""
    program = tmp_path / "dies"
    end = f"kill -{-code} $$" if code < 0 else f"exit {code}"
    program.write_text(f'#!/bin/sh\necho \'{{"columns": ["a"], "rows": 9}}\'\necho \'[1, {{"a": 1}}]\'\n{end}\n')
    program.chmod(0o755)
    monkeypatch.setattr(parquet_module.sys, "executable", str(program))
    (tmp_path / "x.parquet").write_bytes(GOOD)
    rows = read_rows([tmp_path / "x.parquet"])
    assert isinstance(next(rows), Row)
    with pytest.raises(BadSource) as error:
        next(rows)
    assert why in error.value.detail


def test_the_worker_has_no_environment_and_ends_with_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "tells"
    told = tmp_path / "told"
    program.write_text(
        f'#!/bin/sh\n(env; echo pid=$$) >{told}\necho \'{{"columns": ["a"], "rows": 9}}\'\n'
        "while :; do echo '[1, {\"a\": 1}]'; done\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(parquet_module.sys, "executable", str(program))
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    (tmp_path / "x.parquet").write_bytes(GOOD)
    rows = read_rows([tmp_path / "x.parquet"])
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    text = told.read_text()
    assert "hf_secret" not in text
    pid = int(text.rpartition("pid=")[2])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_random_damage_never_gets_through_as_something_else(tmp_path: Path) -> None:
    """Whatever is done to a file, it is read, or refused with `BadSource`."""
    data = written(pa.table({"question": [f"{n}?" * 9 for n in range(50)], "o": [["a", "b"]] * 50}), row_group_size=20)
    chance = random.Random(3)
    outcomes = set()
    for _ in range(12):
        damaged = bytearray(data)
        for _ in range(3):
            damaged[chance.randrange(4, len(data) - 8)] = chance.randrange(256)
        try:
            read(tmp_path / "x.parquet", bytes(damaged))
            outcomes.add("read")
        except BadSource:
            outcomes.add("refused")
    assert "refused" in outcomes


def test_a_cancelled_build_ends_between_rows(tmp_path: Path) -> None:
    class Cancelled(Exception): ...

    def progress(done: int, total: int) -> None:
        if 0 < done < total:
            raise Cancelled

    (tmp_path / "x.parquet").write_bytes(GOOD)
    with pytest.raises(Cancelled):
        list(read_rows([tmp_path / "x.parquet"], progress))


def test_columns_are_read_from_the_footer_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(damaged_pages())
    with path.open("rb") as file:
        assert parquet_columns("x.parquet", file, path.stat().st_size) == ["question", "answer"]


def test_a_parquet_file_sent_under_any_name_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "problems.jsonl"
    path.write_bytes(written(pa.Table.from_pylist(gsm8k.PROBLEMS)))
    assert add(tmp_path / "data", Order("gsm8k", source=str(path))).problems == len(gsm8k.PROBLEMS)


def test_the_worker_needs_none_of_our_packages() -> None:
    """It is started in isolation, where they are not in the path of an image."""
    imported = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(ast.parse(Path(worker.__file__).read_text()))
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    assert imported - set(sys.stdlib_module_names) == {"collections.abc", "pyarrow", "pyarrow.parquet"}
