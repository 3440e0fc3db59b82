"""The catalogue of published benchmarks: every one of them added from a hub on this machine, by REST, page and command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.benchmarks.building.hub_records import HubRecords
from orchestrator.benchmarks.building.pack import Origin, build_benchmark
from orchestrator.benchmarks.published.catalogue import ADAPTERS, FILES, catalogue, published
from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.errors import BadSource, DownloadFailed
from orchestrator.datasets.fetching.sources import FORMATS
from orchestrator.system.files import DiskRoom
from tests.benchmark_records import published_rows as rows
from tests.benchmark_records.published_on_hub import repositories
from tests.hub_server import TOKEN, Hub, serving_hub
from tests.served import Service
from tests.service.datasets.test_routes import added

COUNTS = {
    "mmlu": len(rows.MMLU),
    "arc_easy": len(rows.ARC),
    "arc_challenge": len(rows.ARC),
    "truthfulqa_mc1": len(rows.TRUTHFULQA),
    "gpqa_diamond": len(rows.GPQA),
    "bbh": 27,
    "math_500": len(rows.MATH_500),
    "aime_2024": 1,
    "aime_2025": 1,
    "ifeval": 1,
    "ifeval_loose": 1,
    "simpleqa": len(rows.SIMPLEQA),
    "ifeval_instructions": 1,
    "livecodebench_execution": 1,
    "livecodebench_test_output": 1,
}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    with serving_hub() as server:
        server.repos = repositories()
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
        yield server


@pytest.fixture
def here(tmp_path: Path) -> Origin:
    packs = Catalogue(tmp_path)
    packs.prepare()
    return Origin({}, packs, HubRecords(tmp_path, DiskRoom(tmp_path)))


def test_the_catalogue_has_every_adapter_and_every_file() -> None:
    assert set(ADAPTERS) == set(FORMATS)
    assert [entry.name for entry in catalogue()] == sorted([*FORMATS, *FILES])
    assert set(COUNTS) == set(FILES)
    assert all(entry.licence and entry.source and entry.facts.problems for entry in catalogue())


@pytest.mark.parametrize("name", FILES)
def test_a_published_benchmark_is_built_from_the_hub_at_its_commit(hub: Hub, here: Origin, name: str) -> None:
    definition = published(name)
    assert definition is not None
    built = build_benchmark(here.catalogue.packs, definition, here)
    assert (built.problems, built.left_out) == (COUNTS[name], ())
    info = here.catalogue.get(name)
    assert (info.revision, info.licence) == (hub.repos[definition.records.hub or ""].commit, definition.licence)
    assert len(info.files) == len(definition.records.configs)
    here.catalogue.verify(name)


def test_a_gated_one_says_what_to_do(hub: Hub, here: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN")
    definition = published("gpqa_diamond")
    assert definition is not None
    with pytest.raises(DownloadFailed, match="is gated: accept the terms"):
        build_benchmark(here.catalogue.packs, definition, here)
    assert [info.name for info in here.catalogue.benchmarks()] == ["sample"]


def test_without_the_hub_its_records_are_refused(here: Origin) -> None:
    definition = published("mmlu")
    assert definition is not None
    with pytest.raises(BadSource, match="add them as a file"):
        build_benchmark(here.catalogue.packs, definition, Origin({}, here.catalogue))


@pytest.mark.anyio
async def test_listed_and_added_over_rest(hub: Hub, service: Service) -> None:
    listed = {entry["name"]: entry for entry in (await service.client.get("/api/benchmarks/catalogue")).json()["items"]}
    assert (listed["gpqa_diamond"]["gated"], listed["gsm8k"]["described_by"], listed["mmlu"]["added"]) == (
        True,
        "adapter",
        False,
    )
    shown = (await service.client.get("/api/benchmarks/catalogue/mmlu")).json()
    assert shown["text"].startswith("name: mmlu\n")
    assert (await service.client.get("/api/benchmarks/catalogue/nothing")).status_code == 404
    started = await service.client.post("/api/benchmarks/catalogue/mmlu")
    assert (started.status_code, started.headers["location"]) == (202, "/api/datasets/mmlu")
    assert (await added(service, "mmlu"))["problems"] == COUNTS["mmlu"]
    benchmark = (await service.client.get("/api/benchmarks/mmlu")).json()
    assert benchmark["prompt_version"].startswith("mmlu-")
    assert (await service.client.get("/api/benchmarks/catalogue/mmlu")).json()["added"]


@pytest.mark.anyio
async def test_one_that_a_model_judges_needs_the_model(hub: Hub, service: Service) -> None:
    path = "/api/benchmarks/catalogue/simpleqa"
    assert (await service.client.get(path)).json()["needs_judge"]
    missing = await service.client.post(path)
    assert (missing.status_code, "--judge MODEL" in missing.json()["detail"]) == (422, True)
    assert (await service.client.post(path, json={"judge": "nobody"})).status_code == 404
    useless = await service.client.post("/api/benchmarks/catalogue/mmlu", json={"judge": "demo-strong"})
    assert (useless.status_code, "No model judges 'mmlu'" in useless.json()["detail"]) == (422, True)
    assert (await service.client.post(path, json={"judge": "demo-strong"})).status_code == 202
    assert (await added(service, "simpleqa"))["state"] == "done"
    rules = service.services.catalogue.get("simpleqa").rules
    assert rules is not None
    assert rules.judge.grader is not None
    assert (rules.judge.grader.model, rules.judge.grader.worths) == (
        "demo-strong",
        {"CORRECT": 1, "INCORRECT": 0, "NOT_ATTEMPTED": 0},
    )


@pytest.mark.anyio
async def test_datasets_know_the_same_names(hub: Hub, service: Service) -> None:
    refused = await service.client.post("/api/datasets", json={"name": "arc_easy", "split": "train"})
    assert refused.status_code == 422
    assert "benchyard benchmarks catalogue arc_easy" in refused.json()["detail"]
    assert (await service.client.post("/api/datasets", json={"name": "arc_easy"})).status_code == 202
    assert (await added(service, "arc_easy"))["problems"] == COUNTS["arc_easy"]


@pytest.mark.anyio
async def test_the_page_offers_what_is_not_here(hub: Hub, service: Service) -> None:
    page = (await service.client.get("/benchmarks")).text
    assert 'aria-label="Add aime_2025"' in page
    posted = await service.client.post("/benchmarks/catalogue/aime_2025")
    assert posted.headers["location"] == "/datasets"
    assert (await added(service, "aime_2025"))["state"] == "done"
    assert 'aria-label="Add aime_2025"' not in (await service.client.get("/benchmarks")).text
