"""Datasets over HTTP: sent as a file, looked at, checked, removed; and what is refused, with nothing left of it."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import httpx
import pytest

from orchestrator.datasets.fetching.library import Report
from orchestrator.datasets.packs.build import Built
from orchestrator.errors import Invalid
from orchestrator.settings import Settings
from tests.benchmark_records.livecodebench import lcb_record
from tests.served import Service, served

pytestmark = pytest.mark.anyio


def body(*records: dict[str, Any] | str) -> bytes:
    return "".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in records).encode()


async def added(service: Service, name: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        job: dict[str, Any] = (await service.client.get(f"/api/datasets/{name}")).json()
        return job if job["state"] != "running" else None

    while (job := await look()) is None:
        await anyio.sleep(0.02)
    return job


def nothing_left(service: Service) -> bool:
    data = service.settings.data
    uploads = data / "uploads"
    hidden = [path.name for path in (data / "packs").iterdir() if path.name.startswith(".")]
    return not hidden and (not uploads.exists() or not list(uploads.iterdir()))


async def test_a_sent_file_becomes_a_dataset_that_can_be_checked_and_removed(service: Service) -> None:
    sent = await service.client.put("/api/datasets/mine", content=body(lcb_record("a"), "{", lcb_record("b")))
    assert (sent.status_code, sent.headers["location"]) == (202, "/api/datasets/mine")
    job = await added(service, "mine")
    assert (job["state"], job["problems"], job["left_out"], job["dataset"]["problems"]) == ("done", 2, 1, 2)
    assert "line 2" in job["left_out_lines"][0]
    assert job["step"] == "build"
    assert job["done_bytes"] == job["total_bytes"] > 0
    listed = (await service.client.get("/api/datasets")).json()
    assert [each["name"] for each in listed["items"]] == ["mine", "sample"]
    assert (await service.client.post("/api/datasets/mine/verify")).json()["pack_digest"] == job["pack_digest"]
    assert (await service.client.delete("/api/datasets/mine")).status_code == 204
    assert (await service.client.post("/api/datasets/mine/verify")).status_code == 404
    assert nothing_left(service)


async def test_statistics_and_some_records_are_shown(service: Service) -> None:
    shown = (await service.client.get("/api/datasets/sample", params={"records": 2})).json()
    assert sum(shown["statistics"]["difficulties"].values()) == shown["dataset"]["problems"]
    assert len(shown["records"]) == 2
    assert {"id", "difficulty", "date", "record"} <= set(shown["records"][0])
    assert (await service.client.get("/api/datasets/sample")).json()["records"] == []
    assert (await service.client.get("/api/datasets/sample", params={"records": 21})).status_code == 422
    assert (await service.client.get("/datasets/absent")).status_code == 404


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b"\x1f\x8b\x08\x00", "cut short"),
        (body(lcb_record("a"), lcb_record("a")), "both have the id 'a'"),
        (body("{", "[]"), "no usable problem"),
        (b"PAR1 rows PAR1", "Parquet"),
    ],
    ids=["empty", "truncated gzip", "duplicate", "nothing usable", "parquet"],
)
async def test_a_file_that_cannot_be_used_fails_with_a_reason(content: bytes, why: str, service: Service) -> None:
    await service.client.put("/api/datasets/mine", content=content)
    job = await added(service, "mine")
    assert (job["state"], job["dataset"]) == ("failed", None)
    assert why in job["error"]
    assert nothing_left(service)


@pytest.fixture
async def small(new_settings: Callable[..., Settings], anyio_backend: str) -> AsyncIterator[Service]:
    async with served(new_settings(max_upload_bytes=10_000)) as it:
        yield it


async def pieces(size: int) -> AsyncIterator[bytes]:
    for _ in range(size // 1000):
        yield b" " * 1000


async def test_a_file_that_is_too_large_is_refused(small: Service) -> None:
    known = await small.client.put("/api/datasets/mine", content=b" " * 10_001)
    told = await small.client.put("/api/datasets/mine", content=pieces(12_000))
    assert [(each.status_code, each.json()["code"]) for each in (known, told)] == [(413, "TOO_LARGE")] * 2
    assert (await small.client.get("/api/datasets/mine")).status_code == 404
    assert nothing_left(small)


async def test_without_room_on_the_disk_nothing_is_taken(new_settings: Callable[..., Settings]) -> None:
    async with served(new_settings(min_free_disk_bytes=1 << 60)) as full:
        answers: list[httpx.Response] = [
            await full.client.put("/api/datasets/mine", content=body(lcb_record("a"))),
            await full.client.post("/api/grades", params={"benchmark": "sample"}, content=b"{}"),
        ]
        assert [(each.status_code, each.json()["code"]) for each in answers] == [(507, "NO_SPACE")] * 2
        assert "Make room" in answers[0].json()["detail"]
        assert nothing_left(full)


async def test_datasets_being_added_are_jobs_that_stop_and_begin_again(service: Service) -> None:
    jobs, go_on, told = service.services.dataset_jobs, threading.Event(), threading.Event()

    def work(report: Report) -> Built:
        report("download", "a.jsonl", 10, 100)
        told.set()
        go_on.wait(10)
        report("download", "a.jsonl", 20, 100)
        raise Invalid("it went on")

    job_id = jobs.start("slow", work).id
    run_id = await service.new_run()
    await anyio.to_thread.run_sync(told.wait)
    listed = (await service.client.get("/api/jobs", params={"limit": 1})).json()
    rest = (await service.client.get("/api/jobs", params={"after": listed["next"]})).json()
    assert {each["id"] for each in listed["items"] + rest["items"]} == {job_id, run_id}
    (job,) = (await service.client.get("/api/jobs", params={"type": "dataset_build", "status": "running"})).json()["items"]
    assert (job["id"], job["name"], job["percent"], job["detail"]) == (job_id, "slow", 10, "a.jsonl")
    # Who may not change datasets may not stop them here either
    made = (await service.client.post("/api/tokens", json={"name": "run", "scope": "run"})).json()
    bearer = {"authorization": f"Bearer {made['token']}"}
    assert (await service.stranger.post(f"/api/jobs/{job_id}/cancel", headers=bearer)).status_code == 403
    # When it is cancelled, it ends at its next step, and its stream says so
    assert (await service.client.post(f"/api/jobs/{job_id}/cancel")).status_code == 202
    go_on.set()
    told_all = (await service.client.get(f"/api/jobs/{job_id}/stream")).text
    assert ("event: failed" in told_all, '"status":"cancelled"' in told_all, "event: end" in told_all) == (True, True, True)
    assert (await service.client.post(f"/api/jobs/{job_id}/cancel")).status_code == 409
    # And tried again it is another job
    again = (await service.client.post(f"/api/jobs/{job_id}/retry")).json()["job_id"]
    assert again != job_id
    ended = (await service.client.get(f"/api/jobs/{again}/stream")).text
    assert "it went on" in ended
    sent = (await service.client.put("/api/datasets/file", content=b"{")).json()
    await added(service, "file")
    refused = await service.client.post(f"/api/jobs/{sent['job_id']}/retry")
    assert (refused.status_code, "send the file again" in refused.json()["detail"]) == (409, True)
