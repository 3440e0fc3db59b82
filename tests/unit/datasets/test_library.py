"""Adding datasets by name, file and address."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.errors import BadSource, DownloadFailed
from orchestrator.datasets.fetching import library
from orchestrator.datasets.fetching.library import Order, add
from orchestrator.datasets.fetching.sources import LCB_FILES, RemoteFile, hub_endpoint, remote_files
from tests.benchmark_records.livecodebench import lcb_record


def test_an_own_file_becomes_a_benchmark(tmp_path: Path, write_lines: Callable[..., Path]) -> None:
    seen: list[tuple[str, str, int, int]] = []
    built = add(
        tmp_path, Order("mine", source=str(write_lines(lcb_record("a"), "{"))), report=lambda *step: seen.append(step)
    )
    info = Catalogue(tmp_path).get("mine")
    assert (built.problems, info.adapter, info.source, info.licence) == (1, "livecodebench", "problems.jsonl", "")
    assert info.left_out[0].startswith("problems.jsonl line 2")
    assert seen[-1][:2] == ("build", "problems.jsonl")


def test_a_known_name_has_its_own_format(tmp_path: Path, benchmark_files: Path) -> None:
    add(tmp_path, Order("gsm8k", source=str(benchmark_files / "gsm8k.jsonl")))
    add(tmp_path, Order("mbpp_sanitized", source=str(benchmark_files / "sanitized-mbpp.json"), form="mbpp"))
    assert [info.adapter for info in Catalogue(tmp_path).benchmarks()] == ["gsm8k", "mbpp"]


def test_a_given_sha256_is_checked(tmp_path: Path, write_lines: Callable[..., Path]) -> None:
    source = write_lines(lcb_record("a"))
    add(tmp_path / "d", Order("mine", source=str(source), sha256=hashlib.sha256(source.read_bytes()).hexdigest().upper()))
    with pytest.raises(BadSource, match="not the file expected"):
        add(tmp_path / "e", Order("mine", source=str(source), sha256="0" * 64))
    assert not (tmp_path / "e").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"name": "mine", "source": "/no/such/file"}, "no file"),
        ({"name": "mine"}, "not known where"),
        ({"name": "Mine"}, "cannot name"),
        ({"name": "sample", "source": "/x"}, "comes with Benchyard"),
        ({"name": "mine", "source": "/x", "form": "xml"}, "no format 'xml'"),
        ({"name": "gsm8k", "release": "v1"}, "no releases"),
        ({"name": "livecodebench", "release": "release_v9"}, "no release"),
        ({"name": "livecodebench", "release": "v1", "source": "/x"}, "only without"),
    ],
)
def test_what_cannot_be_added_is_said(tmp_path: Path, arguments: dict[str, str], why: str) -> None:
    with pytest.raises(BadSource, match=why):
        add(tmp_path, Order(**arguments))  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


RELEASES = [
    ("release_v1", LCB_FILES[:1]),
    ("release_v3", LCB_FILES[:3]),
    ("release_latest", LCB_FILES),
    (None, LCB_FILES),
    ("v4", LCB_FILES[3:4]),
    ("v4_v6", LCB_FILES[3:]),
]


@pytest.mark.parametrize(("release", "files"), RELEASES, ids=[str(row[0]) for row in RELEASES])
def test_releases_of_livecodebench(release: str | None, files: tuple[str, ...]) -> None:
    found = remote_files("livecodebench", release, "https://hub.example")
    assert remote_files("livecodebench_self_repair", release, "https://hub.example") == found
    root = "https://hub.example/datasets/livecodebench/code_generation_lite/resolve/main"
    assert [file.url for file in found] == [f"{root}/{file}" for file in files]


@pytest.mark.parametrize("release", ["release_v0", "release_v7", "v6_v4", "v7", "latest", "release_v1_v2", "v1_v7"])
def test_releases_that_are_none(release: str) -> None:
    with pytest.raises(BadSource, match="no release"):
        remote_files("livecodebench", release, "https://hub.example")


def test_the_hub_can_be_another_one() -> None:
    assert hub_endpoint({"HF_ENDPOINT": "https://mirror.example/"}) == "https://mirror.example"
    assert hub_endpoint({}).startswith("https://")


def fake_fetch(files: dict[str, bytes]) -> Callable[..., Path]:
    def fetch(file: RemoteFile, target: Path, **_: object) -> Path:
        if file.name not in files:
            raise DownloadFailed("it broke off")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(files.pop(file.name))
        return target

    return fetch


def test_downloads_are_cleared_after_the_build(
    tmp_path: Path, write_lines: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (write_lines(lcb_record(name)).read_bytes() for name in "ab")
    monkeypatch.setattr(library, "fetch", fake_fetch({"test.jsonl": first, "test2.jsonl": second}))
    assert add(tmp_path / "d", Order("livecodebench", release="release_v2")).problems == 2
    assert list((tmp_path / "d" / "downloads").iterdir()) == []


def test_files_that_arrived_are_not_fetched_again(
    tmp_path: Path, write_lines: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (write_lines(lcb_record(name)).read_bytes() for name in "ab")
    monkeypatch.setattr(library, "fetch", fake_fetch({"test.jsonl": first}))
    with pytest.raises(DownloadFailed):
        add(tmp_path / "d", Order("livecodebench", release="release_v2"))
    monkeypatch.setattr(library, "fetch", fake_fetch({"test2.jsonl": second}))
    assert add(tmp_path / "d", Order("livecodebench", release="release_v2")).problems == 2


def test_a_file_that_cannot_be_built_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "fetch", fake_fetch({"x.jsonl": b"rubbish"}))
    with pytest.raises(BadSource):
        add(tmp_path, Order("mine", source="https://files.example/x.jsonl"))
    assert list((tmp_path / "downloads").iterdir()) == []
    assert list((tmp_path / "packs").iterdir()) == []
