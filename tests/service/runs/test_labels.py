"""Name, tags, note and author of runs: given, changed, found by, kept by a retry."""

from __future__ import annotations

import pytest

from tests.served import Service

pytestmark = pytest.mark.anyio

RUNS = "/api/container-runs"
GOOD = {"model_id": "demo-strong", "sample_size": 2}


async def created(service: Service, **more: object) -> str:
    answer = await service.client.post(RUNS, json={**GOOD, **more})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["run_id"])


async def test_labels_are_given_changed_and_found_by(shared_service: Service) -> None:
    named = await created(shared_service, name="Baseline of May", tags=["base", "größe"], note="before the new prompt")
    other = await created(shared_service, tags=["basement"])
    run = (await shared_service.client.get(f"{RUNS}/{named}")).json()
    assert (run["name"], run["tags"], run["note"]) == ("Baseline of May", ["base", "größe"], "before the new prompt")
    assert run["author"] == "the installation's token"
    for tag, expected in (("base", [named]), ("größe", [named]), ("basement", [other]), ("bas", [])):
        found = (await shared_service.client.get(RUNS, params={"tag": tag})).json()["items"]
        assert [run["id"] for run in found] == expected, tag
    changed = await shared_service.client.patch(f"{RUNS}/{named}", json={"tags": ["kept"], "note": None})
    assert (changed.json()["name"], changed.json()["tags"], changed.json()["note"]) == ("Baseline of May", ["kept"], None)


@pytest.mark.parametrize("labels", [{"tags": ["two words"]}, {"tags": ["x"] * 21}, {"name": "n" * 201}, {"color": "red"}])
async def test_labels_that_cannot_be_are_refused(shared_service: Service, labels: dict[str, object]) -> None:
    run_id = await created(shared_service)
    assert (await shared_service.client.patch(f"{RUNS}/{run_id}", json=labels)).status_code == 422
    assert (await shared_service.client.post(RUNS, json={**GOOD, **labels})).status_code == 422


async def test_a_missing_run_has_no_labels(shared_service: Service) -> None:
    assert (await shared_service.client.patch(f"{RUNS}/nothing", json={"name": "x"})).status_code == 404


async def test_a_batch_gives_its_tags_to_its_runs(shared_service: Service) -> None:
    body = {"models": ["demo-strong", "demo-weak"], "sample_size": 1, "tags": ["nightly"]}
    answer = await shared_service.client.post("/api/batches", json=body)
    assert answer.status_code == 202, answer.text
    found = (await shared_service.client.get(RUNS, params={"tag": "nightly"})).json()["items"]
    assert len(found) == 2
    assert {run["batch_id"] for run in found} == {answer.json()["batch_id"]}
