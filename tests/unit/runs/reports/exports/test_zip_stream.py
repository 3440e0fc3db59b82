"""A zip that is written in one pass is one that every reader opens."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.runs.reports.exports.zip_stream import ZipStream

NOW = datetime(2026, 11, 18, 10, 30, 8, tzinfo=UTC)


def test_members_come_back_as_they_were() -> None:
    stream = ZipStream(NOW)
    file = stream.member("a/é.json", b"{}") + stream.begin("long") + stream.write(b"x" * 100_000) + stream.write(b"end")
    archive = zipfile.ZipFile(io.BytesIO(file + stream.end() + stream.member("empty", b"") + stream.close()))
    assert archive.testzip() is None
    assert archive.namelist() == ["a/é.json", "long", "empty"]
    assert archive.read("a/é.json") == b"{}"
    assert archive.read("long") == b"x" * 100_000 + b"end"
    assert archive.getinfo("long").date_time == (2026, 11, 18, 10, 30, 8)


def test_an_empty_archive_is_one() -> None:
    assert zipfile.ZipFile(io.BytesIO(ZipStream(NOW).close())).namelist() == []


def test_more_members_than_the_old_format_can_count() -> None:
    stream = ZipStream(NOW)
    file = b"".join(stream.member(str(number), b"%d" % number) for number in range(70_000)) + stream.close()
    archive = zipfile.ZipFile(io.BytesIO(file))
    assert len(archive.namelist()) == 70_000
    assert archive.read("69999") == b"69999"


def test_a_file_larger_than_the_old_format_can_address(tmp_path: Path) -> None:
    before = 5 << 30
    stream = ZipStream(NOW, offset=before)
    with (tmp_path / "large.zip").open("wb") as file:
        file.seek(before)  # a sparse file: nothing is written
        file.write(stream.member("far", b"here") + stream.close())
    with zipfile.ZipFile(tmp_path / "large.zip") as archive:
        assert archive.read("far") == b"here"
