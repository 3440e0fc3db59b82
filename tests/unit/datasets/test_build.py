"""Builds: all usable problems in order, a clear error for a source that cannot be used, and never half a pack."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.datasets.errors import BadSource, PackDamaged
from orchestrator.datasets.formats.published.livecodebench import LiveCodeBench
from orchestrator.datasets.packs.build import build, pack_path
from orchestrator.datasets.packs.pack import Facts, Pack
from orchestrator.datasets.packs.writer import UNFINISHED, sweep, writing
from tests.benchmark_records.livecodebench import lcb_record

FORM = LiveCodeBench()


def nothing_left(packs: Path) -> bool:
    return not packs.exists() or not list(packs.iterdir())


def test_problems_come_back_in_order_with_what_was_left_out(tmp_path: Path, write_lines: Callable[..., Path]) -> None:
    built = build(tmp_path / "packs", "own", FORM, [write_lines(lcb_record("b"), "{bad", lcb_record("a"))])
    pack = Pack.open(tmp_path / "packs" / "own.pack")
    assert built.problems == 2
    assert [entry.id for entry in pack.entries] == ["b", "a"]
    assert pack.facts.left_out == tuple(map(str, built.left_out))
    assert built.left_out[0].place == "problems.jsonl line 2"
    assert [record["question_id"] for record in pack.records(["a", "b"])] == ["a", "b"]
    pack.verify()


def test_the_digest_depends_on_the_content_alone(tmp_path: Path, write_lines: Callable[..., Path]) -> None:
    plain = write_lines(lcb_record("a"), lcb_record("b"))
    squeezed = tmp_path / "other.jsonl.gz"
    squeezed.write_bytes(gzip.compress(plain.read_bytes()))
    digests = [build(tmp_path / "packs", name, FORM, [file]).digest for name, file in (("x", plain), ("y", squeezed))]
    changed = build(tmp_path / "packs", "z", FORM, [write_lines(lcb_record("a"), lcb_record("b", difficulty="hard"))]).digest
    assert digests[0] == digests[1] != changed


def cut_gzip(path: Path) -> None:
    whole = gzip.compress("\n".join(json.dumps(lcb_record(f"p{i}")) for i in range(50)).encode())
    path.write_bytes(whole[: len(whole) // 2])


def broken_gzip(path: Path) -> None:
    whole = bytearray(gzip.compress("\n".join(json.dumps(lcb_record(f"p{i}")) for i in range(50)).encode()))
    whole[len(whole) // 2] ^= 0xFF
    path.write_bytes(whole)


def duplicates(path: Path) -> None:
    path.write_text("\n".join(json.dumps(lcb_record("p1")) for _ in range(2)))


SOURCES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing file": (lambda path: None, "There is no file"),
    "empty file": (lambda path: path.touch(), "is empty"),
    "only blank lines": (lambda path: path.write_text("\n\n"), "no usable problem"),
    "only broken records": (
        lambda path: path.write_text("{x\n"),
        r"no usable problem.*First: source.jsonl line 1: not JSON",
    ),
    "not text at all": (lambda path: path.write_bytes(bytes(range(256)) * 50), "no usable problem"),
    "truncated gzip": (cut_gzip, "cut short"),
    "damaged gzip": (broken_gzip, "damaged|cut short"),
    "duplicate ids": (duplicates, r"line 1 and source.jsonl line 2 both have the id 'p1'"),
}


@pytest.mark.parametrize(("make", "message"), SOURCES.values(), ids=SOURCES.keys())
def test_a_source_that_cannot_be_used_leaves_nothing(tmp_path: Path, make: Callable[[Path], object], message: str) -> None:
    source = tmp_path / "source.jsonl"
    make(source)
    with pytest.raises(BadSource, match=message):
        build(tmp_path / "packs", "own", FORM, [source])
    assert nothing_left(tmp_path / "packs")


def test_a_failed_build_keeps_the_older_pack(tmp_path: Path, write_lines: Callable[..., Path]) -> None:
    packs = tmp_path / "packs"
    first = build(packs, "own", FORM, [write_lines(lcb_record("a"))])
    with pytest.raises(BadSource):
        build(packs, "own", FORM, [write_lines("{bad")])
    assert Pack.open(packs / "own.pack").digest == first.digest
    assert [path.name for path in packs.iterdir()] == ["own.pack"]


@pytest.mark.parametrize("name", ["", "Own", "../own", "a/b", "a" * 65, ".hidden", "1st"])
def test_names_that_could_point_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadSource, match="cannot name"):
        pack_path(tmp_path, name)


def test_what_a_killed_build_left_is_swept_and_a_living_one_is_not(tmp_path: Path) -> None:
    (tmp_path / f".dead.pack.x{UNFINISHED}").write_bytes(b"half")
    with pytest.raises(KeyboardInterrupt), writing(tmp_path / "live.pack", "livecodebench"):
        assert [path.name for path in sweep(tmp_path)] == [f".dead.pack.x{UNFINISHED}"]
        assert len(list(tmp_path.iterdir())) == 1
        raise KeyboardInterrupt
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("position", [3, 60, -60, -1, None], ids=["magic", "record", "index", "footer", "cut"])
def test_a_damaged_pack_is_noticed(tmp_path: Path, write_lines: Callable[..., Path], position: int | None) -> None:
    build(tmp_path, "own", FORM, [write_lines(lcb_record("a"), lcb_record("b"))])
    path = tmp_path / "own.pack"
    data = bytearray(path.read_bytes())
    if position is None:
        del data[-100:]
    else:
        data[position] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(PackDamaged, match="cannot be used"):
        Pack.open(path).verify()


def test_packs_made_before_revisions_were_recorded_can_be_opened() -> None:
    texts = dict.fromkeys(("name", "adapter", "description", "licence", "source", "source_sha256"), "x")
    facts = Facts.of({**texts, "left_out": ["one"]})
    assert (facts.left_out, facts.revision, facts.files) == (("one",), "", ())
