"""The archive of an ended run: what is in it, that it is the same each time, and that nothing hostile gets out of it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import Session

from orchestrator.archives.format.layout import safe_names
from orchestrator.archives.format.reading import BadArchive, read_archives
from orchestrator.runs import queries as run_queries
from tests.service.archives.conftest import Yard

pytestmark = pytest.mark.anyio


def files(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        assert all(member.isreg() and member.mtime == 0 for member in tar)
        return {member.name: (tar.extractfile(member) or io.BytesIO()).read() for member in tar}


async def archived(yard: Yard, run_id: str, **policy: Any) -> tuple[Path, dict[str, bytes], dict[str, Any]]:
    keeper = yard.keeper(**policy)
    await keeper.round()
    row = await yard.row(run_id)
    assert row.state == "stored", row.error
    path = keeper.path(row)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == row.sha256
    found = files(path)
    return path, found, json.loads(found["manifest.json"])


async def test_an_archive_holds_everything_with_digests_and_is_the_same_each_time(yard: Yard) -> None:
    run_id = await yard.ended_run()
    await yard.artefact(run_id, "profile.bin", b"\x00\x01")
    folder = yard.folder / "artefacts" / run_id
    folder.mkdir(parents=True)
    (folder / "profile.bin").write_bytes(b"\x00\x01")
    path, found, manifest = await archived(yard, run_id)
    assert path.name == "result.tar.gz"
    assert list(found) == [
        "manifest.json",
        "artefacts/profile.bin",
        "containers.json",
        "items.jsonl",
        "log.jsonl",
        "output.txt",
        "run.json",
    ]
    assert {each["name"]: each["sha256"] for each in manifest["files"]} == {
        name: hashlib.sha256(content).hexdigest() for name, content in found.items() if name != "manifest.json"
    }
    assert b"all done" in found["output.txt"]
    assert b"token_hash" not in b"".join(found.values())
    lines: list[dict[str, Any]] = []
    assert read_archives(path, lambda: lines.append).manifests == [manifest]
    assert [(line["problem_id"], line["answer"]) for line in lines] == [("p0", "x 0"), ("p1", "x 1")]
    first = path.read_bytes()
    path.unlink()
    contents = await yard.keeper().contents(run_id)
    assert b"".join([piece async for piece in contents.tar_gz()]) == first
    assert (await yard.row(run_id)).grading_digest == manifest["grading_digest"] == contents.grading_digest


async def test_a_run_that_failed_leaves_its_logs_and_facts(yard: Yard) -> None:
    run_id = await yard.ended_run(items=0, status="failed", reason="runner_error", error_message="it broke")
    path, found, manifest = await archived(yard, run_id)
    assert (path.name, manifest["kind"], manifest["reason"]) == ("error.tar.gz", "error", "runner_error")
    assert json.loads(found["containers.json"])[0]["exit_code"] == 0
    assert found["items.jsonl"] == b""


async def test_it_waits_until_the_container_is_gone_and_while_the_disk_is_full(yard: Yard) -> None:
    run_id = await yard.ended_run()

    def alive(session: Session, is_alive: bool) -> None:
        row = run_queries.attempt(session, run_id, 1)
        assert row is not None
        row.removed_at = None if is_alive else yard.clock.now()
        session.add(row)

    await yard.db.write(lambda s: alive(s, True))
    await yard.keeper().round()
    assert (await yard.row(run_id)).state == "waiting"
    await yard.db.write(lambda s: alive(s, False))
    yard.room = False
    await yard.keeper().round()
    assert (await yard.row(run_id)).state == "waiting"
    yard.room = True
    await yard.keeper().round()
    assert (await yard.row(run_id)).state == "stored"


HOSTILE = [
    "../../../tmp/evil",
    "/etc/passwd",
    "..",
    ".hidden",
    "a\nb",
    "CON",
    "Name",
    "name",
    "ü/ü",
    "x" * 100,
    "link",
    "pipe",
]


async def test_hostile_names_and_links_change_nothing_outside(yard: Yard) -> None:
    run_id = await yard.ended_run()
    secret = yard.folder / "secret"
    secret.write_bytes(b"not yours!")
    folder = yard.folder / "artefacts" / run_id
    folder.mkdir(parents=True)
    for name in HOSTILE:
        await yard.artefact(run_id, name, b"not yours!")
        if name == "link":
            (folder / name).symlink_to(secret)
        elif name == "pipe":
            os.mkfifo(folder / name)
        elif "/" not in name and name != "..":
            (folder / name).write_bytes(b"not yours!")
    before = {str(path) for path in yard.folder.rglob("*") if "archives" not in path.parts}
    _, found, manifest = await archived(yard, run_id)
    notes = {note["name"]: note for note in manifest["artefacts"]}
    assert set(notes) == set(HOSTILE)
    assert {name for name, note in notes.items() if note["file"] is None} == {
        "../../../tmp/evil",
        "/etc/passwd",
        "..",
        "ü/ü",
        "link",
        "pipe",
    }
    kept = [note["file"] for note in notes.values() if note["file"]]
    assert set(kept) == {name for name in found if name.startswith("artefacts/")}
    assert all(Path(name).parts == ("artefacts", Path(name).name) and not Path(name).name.startswith(".") for name in kept)
    assert len({name.casefold() for name in kept}) == len(kept) == 6
    assert {str(path) for path in yard.folder.rglob("*") if "archives" not in path.parts} == before


def test_safe_names_are_all_different_whatever_they_were() -> None:
    names = safe_names(["a/b", "a_b", "A_b", "", ".", "..", "con.txt", "a" * 300, "a" * 301])
    assert len({name.casefold() for name in names.values()}) == len(names)
    assert all(name and name[0] != "." and set(name) <= set("abcdefgh_AB.-0123456789cnotx") for name in names.values())


async def test_a_file_that_is_not_as_recorded_is_not_passed_off_as_it(yard: Yard) -> None:
    run_id = await yard.ended_run()
    folder = yard.folder / "artefacts" / run_id
    folder.mkdir(parents=True)
    (folder / "short").write_bytes(b"ab")
    await yard.artefact(run_id, "short", b"abc")
    (folder / "other").write_bytes(b"xyz")
    await yard.artefact(run_id, "other", b"abc")
    await yard.artefact(run_id, "gone", b"abc")
    _, found, manifest = await archived(yard, run_id)
    assert [(note["name"], note["file"]) for note in manifest["artefacts"]] == [
        ("gone", None),
        ("other", None),
        ("short", None),
    ]
    assert not any(name.startswith("artefacts/") for name in found)


async def test_above_the_cap_verdicts_stay_and_texts_go(yard: Yard) -> None:
    run_id = await yard.ended_run(items=20, text="y" * 1000)
    _, found, manifest = await archived(yard, run_id, max_bytes=10_000)
    lines = [json.loads(line) for line in found["items.jsonl"].splitlines()]
    assert len(lines) == 20
    assert 0 < manifest["items_without_texts"] < 20
    assert [("answer" in line, line["outcome"]) for line in lines][-1] == (False, "wrong_answer")
    whole = (await yard.keeper().contents(run_id)).grading_digest
    assert manifest["grading_digest"] == whole


async def test_old_ones_go_first_by_age_and_by_room_and_a_reader_reads_on(yard: Yard) -> None:
    runs = [await yard.ended_run(text=f"text {number}") for number in range(4)]
    keeper = yard.keeper()
    for _ in runs:
        await keeper.round()
        yard.clock.advance(3600)
    sizes = [(await yard.row(run_id)).size_bytes or 0 for run_id in runs]
    file = keeper.open(await yard.row(runs[0]))
    assert file is not None
    yard.clock.advance(24 * 3600)
    await yard.leadership.hold()
    await yard.keeper(max_total_bytes=sum(sizes[1:])).round()
    assert [(await yard.row(run_id)).state for run_id in runs] == ["expired", "stored", "stored", "stored"]
    assert len(os.read(file, 1 << 20)) == sizes[0]
    os.close(file)
    assert keeper.open(await yard.row(runs[0])) is None
    assert not (yard.folder / "archives" / runs[0]).exists()
    await yard.keeper(days=1).round()
    assert {(await yard.row(run_id)).state for run_id in runs} == {"expired"}


@pytest.mark.parametrize("how", ["cut", "changed", "other", "extra", "batch"])
async def test_an_archive_that_is_not_whole_is_refused(yard: Yard, how: str, tmp_path: Path) -> None:
    run_id = await yard.ended_run()
    path, found, _ = await archived(yard, run_id)
    broken = tmp_path / "broken.tar.gz"
    if how == "cut":
        broken.write_bytes(path.read_bytes()[:-200])
    else:
        if how == "changed":
            found["items.jsonl"] = found["items.jsonl"].replace(b"wrong_answer", b"passed      ")
        elif how == "other":
            found = {"hello.txt": b"hello"}
        elif how == "extra":
            found["../evil"] = b"evil"
        else:
            found = {"batch.json": b"{}", **found}
        with tarfile.open(broken, "w:gz") as tar:
            for name, content in found.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    with pytest.raises(BadArchive):
        read_archives(broken, lambda: lambda _: None)


def test_memory_does_not_grow_with_the_run() -> None:
    command = [sys.executable, "-m", "tests.bench.archives", "60", "1000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True, cwd=Path(__file__).parents[3])
    said = json.loads(done.stdout)
    assert said["held_mb"] >= 60
    assert said["memory_mb"] < 30
