"""Data sets from a hub on this machine: splits, pinned commits, cached and resumed files, tokens, and clear refusals."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.alerts.sending.webhooks import AllowedAddresses
from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.errors import BadSource, DownloadFailed
from orchestrator.datasets.fetching.hub import ask
from orchestrator.datasets.fetching.hub_files import IN_USE_S, fetch_splits, trim
from orchestrator.datasets.fetching.library import Order, add
from orchestrator.datasets.fetching.sources import HubSplits
from orchestrator.datasets.packs.pack import Pack
from orchestrator.errors import NoSpace
from orchestrator.system.files import DiskRoom
from runner.benchmarks.mmlu_pro import MmluProTask
from tests.benchmark_records import gsm8k, mmlu_pro
from tests.benchmark_records.on_hub import parquet, repositories, worked_answers
from tests.hub_server import COMMIT, TOKEN, Hub, HubRepo, serving_hub


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    with serving_hub() as it:
        it.repos = repositories()
        monkeypatch.setenv("HF_ENDPOINT", it.url)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
        yield it


def test_mmlu_pro_has_the_five_worked_answers_of_the_category(hub: Hub, tmp_path: Path) -> None:
    built = add(tmp_path, Order("mmlu_pro"))
    assert (built.problems, [mmlu_pro.CONTRADICTION in str(item) for item in built.left_out]) == (
        len(mmlu_pro.OUTPUTS) - 1,
        [True],
    )
    pack = Pack.open(tmp_path / "packs" / "mmlu_pro.pack")
    for entry, record in zip(pack.entries, pack.records([entry.id for entry in pack.entries]), strict=True):
        expected = [row["question"] for row in worked_answers() if row["category"] == entry.category]
        assert [example["question"] for example in record["examples"]] == expected
        assert len(expected) == 5
        prompt = MmluProTask.read(record).prompt()
        assert prompt.version.endswith("-5shot")
    assert pack.facts.revision == COMMIT
    assert pack.facts.source == "TIGER-Lab/MMLU-Pro default test+validation"
    assert dict(pack.facts.files) == {
        path.rpartition("/")[2]: hashlib.sha256(data).hexdigest()
        for path, data in hub.repos["TIGER-Lab/MMLU-Pro"].files.items()
        if path.endswith("parquet")
    }


@pytest.mark.parametrize(
    ("name", "file"), [("gsm8k", "gsm8k.jsonl"), ("humaneval", "HumanEval.jsonl.gz"), ("mbpp", "mbpp.jsonl")]
)
def test_parquet_and_the_authors_own_files_give_the_same_problems(
    hub: Hub, tmp_path: Path, benchmark_files: Path, name: str, file: str
) -> None:
    from_hub = add(tmp_path, Order(name))
    own = tmp_path / file.replace("gsm8k", "test")
    own.write_bytes((benchmark_files / file).read_bytes())
    from_file = add(tmp_path / "other", Order(name, source=str(own)))
    assert from_hub.problems > 1
    assert (from_hub.digest, from_hub.problems) == (from_file.digest, from_file.problems)


def test_a_branch_is_resolved_to_its_commit_and_files_come_from_there(hub: Hub, tmp_path: Path) -> None:
    repo = hub.repos["openai/gsm8k"]
    repo.refs = ("main", "v2")
    add(tmp_path, Order("gsm8k", revision="v2"))
    assert Catalogue(tmp_path).get("gsm8k").revision == COMMIT
    assert all(f"/resolve/{COMMIT}/" in path for path in hub.paths("/resolve/"))
    add(tmp_path, Order("gsm8k", revision=COMMIT))
    with pytest.raises(BadSource, match="no revision 'v3'"):
        add(tmp_path, Order("gsm8k", revision="v3"))


def test_another_config_and_split_of_any_data_set(hub: Hub, tmp_path: Path) -> None:
    built = add(tmp_path, Order("mine", source="hf://openai/gsm8k", form="gsm8k", config="main", split="train"))
    info = Catalogue(tmp_path).get("mine")
    assert (built.problems, info.source, info.licence) == (1, "openai/gsm8k main train", "mit")
    assert add(tmp_path, Order("other", source="hf://openai/gsm8k@main", form="gsm8k")).problems == len(gsm8k.PROBLEMS)
    with pytest.raises(BadSource, match="no split 'validation' in config 'main': train, test"):
        add(tmp_path, Order("mine", source="hf://openai/gsm8k", form="gsm8k", config="main", split="validation"))
    with pytest.raises(BadSource, match="no config 'nope': main, socratic"):
        add(tmp_path, Order("mine", source="hf://openai/gsm8k", form="gsm8k", config="nope"))


def test_files_are_downloaded_once_and_cached_in_the_data_directory(hub: Hub, tmp_path: Path) -> None:
    add(tmp_path, Order("gsm8k"))
    add(tmp_path, Order("gsm8k"))
    assert len(hub.paths("/storage/")) == 1
    (cached,) = (tmp_path / "hub").rglob("*.parquet")
    assert cached.relative_to(tmp_path / "hub").parts[:2] == ("openai--gsm8k", COMMIT)
    hub.repos["openai/gsm8k"].commit = "f" * 40
    add(tmp_path, Order("gsm8k"))
    assert len(hub.paths("/storage/")) == 2


def test_the_cache_is_trimmed_by_last_use(hub: Hub, tmp_path: Path) -> None:
    now = 1_000_000_000.0
    old, new = (tmp_path / "hub" / "a--b" / name / "x.parquet" for name in ("old", "new"))
    for path, used_at in ((old, now - 3 * IN_USE_S), (new, now - 2 * IN_USE_S)):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x" * 100)
        os.utime(path, (used_at, used_at))
    assert trim(tmp_path, now, keep_bytes=250) == []
    assert trim(tmp_path, now, keep_bytes=150) == [old]
    assert not old.parent.exists()
    assert trim(tmp_path, now - 1.5 * IN_USE_S, keep_bytes=0) == []
    assert new.exists()


def test_an_interrupted_download_is_resumed(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.datasets.fetching.download.TRIES", 1)
    hub.cuts = [500]
    with pytest.raises(DownloadFailed, match="What has arrived is kept"):
        add(tmp_path, Order("gsm8k"))
    assert not (tmp_path / "packs").exists()
    add(tmp_path, Order("gsm8k"))
    assert [headers.get("range") for path, headers in hub.asked if "/storage/" in path] == [None, "bytes=500-"]


def test_a_file_that_is_not_what_the_hub_says_is_thrown_away(hub: Hub, tmp_path: Path) -> None:
    (path,) = (path for path in hub.repos["openai/gsm8k"].files if path.startswith("main/test"))
    hub.lies[path] = bytes(len(hub.repos["openai/gsm8k"].files[path]))
    with pytest.raises(DownloadFailed, match="not the file expected"):
        add(tmp_path, Order("gsm8k"))
    assert not list((tmp_path / "hub").rglob("*.parquet*"))


@pytest.mark.parametrize(
    ("private", "gated", "token", "why"),
    [
        (True, False, None, "it is private; then set HF_TOKEN"),
        (True, False, "hf_other", "the token in use has no access"),
        (False, True, None, "is gated: accept the terms at .*/datasets/openai/gsm8k, set HF_TOKEN"),
        (False, True, "hf_other", "is gated: accept the terms"),
    ],
    ids=["private", "private, another's token", "gated", "gated, another's token"],
)
def test_private_and_gated_sets_say_what_to_do(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, private: bool, gated: bool, token: str | None, why: str
) -> None:
    repo = hub.repos["openai/gsm8k"]
    repo.private, repo.gated = private, gated
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(DownloadFailed, match=why):
        add(tmp_path, Order("gsm8k"))
    assert not (tmp_path / "packs").exists()
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert add(tmp_path, Order("gsm8k")).problems == len(gsm8k.PROBLEMS)


def test_the_stored_token_is_used_and_does_not_follow_to_storage(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    hub.repos["openai/gsm8k"].private = True
    add(tmp_path, Order("gsm8k"))
    sent = {"/storage/" in path: headers.get("authorization") for path, headers in hub.asked}
    assert sent == {False: f"Bearer {TOKEN}", True: None}


def test_a_data_set_that_is_not_there(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(DownloadFailed, match="has no data set no/such, or it is private"):
        add(tmp_path, Order("mine", source="hf://no/such"))
    with pytest.raises(BadSource, match="write hf://owner/name"):
        add(tmp_path, Order("mine", source="hf://a/b/c/d"))


@pytest.mark.parametrize(("status", "why"), [(500, "answered 500"), (429, "asks to wait"), (403, "may not read it")])
def test_a_hub_in_trouble(hub: Hub, tmp_path: Path, status: int, why: str) -> None:
    hub.statuses = [status] * 10
    with pytest.raises(DownloadFailed, match=why):
        add(tmp_path, Order("gsm8k"))


def test_no_hub_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DownloadFailed, match=r"The hub at http://127.0.0.1:9 could not be asked about openai/gsm8k"):
        add(tmp_path, Order("gsm8k"))


def test_the_rules_on_addresses_apply_to_the_hub(hub: Hub, tmp_path: Path) -> None:
    nobody = AllowedAddresses([], "BENCHYARD_DATASET_ALLOW")
    with pytest.raises(DownloadFailed, match="may not be fetched"):
        add(tmp_path, Order("gsm8k"), judge=nobody.judge)
    assert hub.asked == []


def test_paths_that_lead_out_of_the_cache_are_refused(hub: Hub, tmp_path: Path) -> None:
    hub.repos["evil/set"] = HubRepo({"../../../test.parquet": parquet(gsm8k.PROBLEMS)})
    with pytest.raises(DownloadFailed, match="not a path within"):
        fetch_splits(tmp_path / "data", HubSplits("evil/set"))


def test_room_is_checked_for_all_files_before_the_first(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(NoSpace):
        fetch_splits(tmp_path, HubSplits("openai/gsm8k", "main"), room=DiskRoom(tmp_path, min_free_bytes=1 << 60))
    assert hub.paths("/resolve/") == []


def test_a_set_that_cannot_be_built_leaves_no_pack(hub: Hub, tmp_path: Path) -> None:
    hub.repos["own/broken"] = HubRepo({"data/test-00000-of-00001.parquet": parquet([{"other": 1}])})
    with pytest.raises(BadSource, match="question"):
        add(tmp_path, Order("mine", source="hf://own/broken", form="gsm8k"))
    assert list((tmp_path / "packs").iterdir()) == []


def test_what_the_hub_says_of_a_data_set(hub: Hub) -> None:
    dataset = ask("TIGER-Lab/MMLU-Pro")
    assert (dataset.commit, dataset.licence) == (COMMIT, "mit")
    assert [file.path for file in dataset.split(None, "validation")] == ["data/validation-00000-of-00001.parquet"]
