"""Archives that somebody made up, given to `replay`: each is refused in a sentence, whatever it claims to hold."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.archives.format.layout import FORMAT, ITEMS, MANIFEST
from orchestrator.archives.format.reading import BadArchive
from orchestrator.archives.format.replay import Verdicts
from orchestrator.cli.files.replay_answers import unpacked

ITEM: dict[str, Any] = {
    "benchmark": "sample",
    "problem_id": "p0",
    "sample_index": 0,
    "outcome": "passed",
    "answer": "x",
    "calls": [],
    "answer_digest": "d",
}
BENCHMARKS = [{"name": "sample", "pack_digest": "sha256:1", "adapter": "livecodebench"}]


def manifest_of(line: bytes, **changed: Any) -> dict[str, Any]:
    verdicts = Verdicts()
    verdicts.add(ITEM)
    digest = verdicts.with_packs({"benchmarks": BENCHMARKS}).digest
    files = [{"name": ITEMS, "size_bytes": len(line), "sha256": hashlib.sha256(line).hexdigest()}]
    return {"format": FORMAT, "run_id": "r-1", "benchmarks": BENCHMARKS, "grading_digest": digest, "files": files, **changed}


def member(name: str, content: bytes) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    return info.tobuf() + content + bytes(-len(content) % tarfile.BLOCKSIZE)


def archive(path: Path, *members: bytes) -> Path:
    path.write_bytes(gzip.compress(b"".join(members) + bytes(2 * tarfile.BLOCKSIZE), 1))
    return path


def whole(path: Path, line: bytes, **changed: Any) -> Path:
    return archive(path, member(MANIFEST, json.dumps(manifest_of(line, **changed)).encode()), member(ITEMS, line))


def line_of(**changed: Any) -> bytes:
    return json.dumps({**ITEM, **changed}).encode() + b"\n"


def test_one_that_is_right_is_taken(tmp_path: Path) -> None:
    found = unpacked(whole(tmp_path / "a.tar.gz", line_of()), tmp_path)
    assert [(run.run_id, len(run.verdicts.then)) for run in found.runs] == [("r-1", 1)]


@pytest.mark.parametrize(
    "changed",
    [
        {"benchmarks": None},
        {"benchmarks": [1]},
        {"benchmarks": "sample"},
        {"benchmarks": [{"name": "sample"}]},
        {"grading_digest": 1},
        {"files": [{"name": ITEMS, "size_bytes": float("inf"), "sha256": ""}]},
    ],
)
def test_a_manifest_of_another_shape_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    with pytest.raises(BadArchive):
        unpacked(whole(tmp_path / "a.tar.gz", line_of(), **changed), tmp_path)


@pytest.mark.parametrize("name", ["run_id", "benchmarks", "grading_digest", "files"])
def test_a_manifest_that_lacks_something_is_refused(tmp_path: Path, name: str) -> None:
    manifest = manifest_of(line_of())
    del manifest[name]
    with pytest.raises(BadArchive):
        unpacked(
            archive(tmp_path / "a.tar.gz", member(MANIFEST, json.dumps(manifest).encode()), member(ITEMS, line_of())),
            tmp_path,
        )


@pytest.mark.parametrize(
    "changed", [{"answer": 7}, {"calls": "x"}, {"calls": [5]}, {"sample_index": float("inf")}, {"answer": "", "code": [1]}]
)
def test_a_result_of_another_shape_is_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    with pytest.raises(BadArchive, match="cannot be understood"):
        unpacked(whole(tmp_path / "a.tar.gz", line_of(**changed)), tmp_path)


def with_long_header(kind: bytes) -> bytes:
    info = tarfile.TarInfo("long")
    info.type, info.size = kind, 1 << 40
    return info.tobuf(tarfile.GNU_FORMAT)


def sparse_by_gnu(_: bytes) -> bytes:
    header = bytearray(tarfile.TarInfo(ITEMS).tobuf(tarfile.GNU_FORMAT))
    header[156:157] = tarfile.GNUTYPE_SPARSE
    header[483:495] = b"77777777777\0"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def sparse_by_pax(_: bytes) -> bytes:
    info = tarfile.TarInfo(ITEMS)
    info.pax_headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(1 << 40)}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info)
    return buffer.getvalue()[: -2 * tarfile.BLOCKSIZE]


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (with_long_header, tarfile.XHDTYPE),
        (with_long_header, tarfile.XGLTYPE),
        (with_long_header, tarfile.GNUTYPE_LONGNAME),
        (sparse_by_gnu, b""),
        (sparse_by_pax, b""),
    ],
)
def test_what_small_files_claim_to_hold_is_not_held(tmp_path: Path, make: Callable[[bytes], bytes], kind: bytes) -> None:
    files = [{"name": ITEMS, "size_bytes": 1 << 40, "sha256": ""}]
    manifest = json.dumps(manifest_of(b"", files=files)).encode()
    with pytest.raises(BadArchive, match=r"an unexpected header|does not name"):
        unpacked(archive(tmp_path / "a.tar.gz", member(MANIFEST, manifest), make(kind)), tmp_path)
