"""Batches through the API: members, groups, ending early, retries, the matrix."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from typing import Any

import pytest

from orchestrator.engines.fake.container import FakeContainer
from tests.served import RunnerClient, Service, http_runner

pytestmark = pytest.mark.anyio

TWO_BY_TWO = {
    "models": ["demo-strong", "demo-weak"],
    "benchmarks": ["sample"],
    "instance_types": ["lite", "basic"],
    "runs_per_instance_type": 2,
    "sample_size": 3,
}


async def new_batch(service: Service, **changed: Any) -> dict[str, Any]:
    answer = await service.client.post("/api/batches", json={**TWO_BY_TWO, **changed})
    assert answer.status_code == 202, answer.text
    body: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"/api/batches/{body['batch_id']}"
    return body


async def batch(service: Service, batch_id: str | int) -> dict[str, Any]:
    answer = await service.client.get(f"/api/batches/{batch_id}")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def until(service: Service, batch_id: str, *states: str, timeout_s: float = 60) -> dict[str, Any]:
    async with asyncio.timeout(timeout_s):
        while (found := await batch(service, batch_id))["state"] not in states:
            await asyncio.sleep(0.05)
    return found


def members(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [member for group in found["instance_types"] for member in group["members"]]


async def test_a_batch_is_all_combinations_and_ends_with_an_archive_of_them(service: Service) -> None:
    made = await new_batch(service, external_id=1_700_000_000, name="nightly")
    assert made["runs"] == 8
    done = await until(service, made["batch_id"], "completed")
    assert (done["external_id"], done["name"], done["counts"]) == (1_700_000_000, "nightly", {"completed": 8})
    assert [group["instance_type"] for group in done["instance_types"]] == ["lite", "basic"]
    assert [len(group["members"]) for group in done["instance_types"]] == [4, 4]
    assert all(group["state"] == "completed" and group["last_heartbeat"] for group in done["instance_types"])
    assert sorted((m["model"], m["benchmark"]) for m in members(done))[::4] == [
        ("demo-strong", "sample"),
        ("demo-weak", "sample"),
    ]
    answer = await service.client.get("/api/batches/1700000000/archive")
    assert answer.headers["content-type"] == "application/gzip"
    with tarfile.open(fileobj=io.BytesIO(answer.content), mode="r:gz") as tar:
        names = tar.getnames()
        about = json.load(tar.extractfile("batch.json") or io.BytesIO())
    folders = {f"{group['instance_type']}-{m['run_id']}" for group in done["instance_types"] for m in group["members"]}
    assert {name.partition("/")[0] for name in names} == {"batch.json", *folders}
    assert {f"{folder}/{file}" for folder in folders for file in ("manifest.json", "items.jsonl", "output.txt")} <= set(
        names
    )
    assert {row["folder"] for row in about["members"]} == folders
    listed = (await service.client.get("/api/batches")).json()["items"]
    assert [(each["id"], each["state"], each["runs"]) for each in listed] == [(made["batch_id"], "completed", 8)]
    runs = (await service.client.get("/api/container-runs", params={"batch_id": made["batch_id"]})).json()["items"]
    assert len(runs) == 8
    assert {run["trigger_type"] for run in runs} == {"batch"}


@pytest.mark.parametrize(
    ("changed", "status", "sentence"),
    [
        ({"runs_per_instance_type": 251}, 422, "1004 runs (2 models x 1 benchmarks x 2 instance types x 251 repeats)"),
        ({"models": []}, 422, "models"),
        ({"models": ["demo-strong", "nobody"]}, 404, "no model 'nobody'"),
        ({"models": ["demo-strong", "demo-strong"]}, 422, "each model may be named once"),
        ({"instance_types": ["lite", "huge"]}, 422, "no instance type 'huge'"),
        ({"instance_types": ["lite", "lite"]}, 422, "each may be named once"),
        ({"benchmarks": ["absent"]}, 404, "no benchmark 'absent'"),
        ({"sample_size": None}, 422, "sample_size"),
        ({"external_id": -1}, 422, "external_id"),
        ({"colour": "red"}, 422, "colour"),
    ],
)
async def test_a_batch_is_made_whole_or_not_at_all(
    shared_service: Service, changed: dict[str, Any], status: int, sentence: str
) -> None:
    answer = await shared_service.client.post("/api/batches", json={**TWO_BY_TWO, **changed})
    assert answer.status_code == status, answer.text
    assert sentence in answer.text
    assert (await shared_service.client.get("/api/batches")).json()["items"] == []
    assert (await shared_service.client.get("/api/container-runs")).json()["items"] == []


async def test_instance_types_for_each_provider(service: Service) -> None:
    machines = {"local": ["lite", "basic"], "lab": ["lite"]}
    made = await new_batch(service, models=["demo-strong"], instance_types=machines, runs_per_instance_type=1)
    assert made["runs"] == 3
    runs = (await service.client.get("/api/container-runs", params={"batch_id": made["batch_id"]})).json()["items"]
    wanted = [("lab", "lite"), ("local", "basic"), ("local", "lite")]
    assert sorted((run["provider"], run["instance_type"]) for run in runs) == wanted
    here = [run["id"] for run in runs if run["provider"] == "local"]
    for run_id in here:
        await service.until(run_id, "completed")
    found = await batch(service, made["batch_id"])
    assert (found["state"], found["request"]["instance_types"]) == ("running", machines), "no machine of lab is connected"
    groups = [(group["provider"], group["instance_type"], group["state"]) for group in found["instance_types"]]
    assert groups == [("local", "lite", "completed"), ("local", "basic", "completed"), ("lab", "lite", "pending")]
    matrix = (await service.client.get(f"/api/batches/{made['batch_id']}/matrix")).json()
    assert matrix["instance_types"] == ["lite on local", "basic on local", "lite on lab"]
    page = await service.client.get(f"/batches/{made['batch_id']}", headers={"accept": "text/html"})
    assert "lite on lab" in page.text
    await service.client.post(f"/api/batches/{made['batch_id']}/end", json={"mode": "stop"})
    await until(service, made["batch_id"], "ended")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"instance_types": {"local": ["lite"]}, "provider": "lab"}, "give either provider, or instance_types"),
        ({"instance_types": {"local": ["lite", "lite"]}}, "each may be named once"),
        ({"instance_types": {"local": []}}, "instance_types.local"),
        ({"instance_types": {}}, "instance_types"),
        ({"instance_types": {"lab": ["huge"]}}, "there is no instance type 'huge'"),
        ({"instance_types": "lite"}, "instance_types"),
    ],
    ids=lambda value: str(value)[:50],
)
async def test_machines_that_cannot_be_meant(shared_service: Service, changed: dict[str, Any], said: str) -> None:
    for kind in (TWO_BY_TWO, {"commands": [{"image": "benchyard-runner:latest", "command": ["true"]}]}):
        answer = await shared_service.client.post("/api/batches", json={**kind, **changed})
        assert (answer.status_code, said in answer.json()["detail"]) == (422, True), answer.text


async def test_keys_and_external_ids_name_one_batch(service: Service) -> None:
    key = {"idempotency-key": "k1"}
    first = await service.client.post("/api/batches", json=TWO_BY_TWO, headers=key)
    again = await service.client.post("/api/batches", json=TWO_BY_TWO, headers=key)
    other = await service.client.post("/api/batches", json={**TWO_BY_TWO, "seed": 1}, headers=key)
    assert (first.json(), other.status_code) == (again.json(), 409)
    second = await new_batch(service)  # within the same second of the manual clock
    assert second["external_id"] == first.json()["external_id"] + 1
    taken = await service.client.post("/api/batches", json={**TWO_BY_TWO, "external_id": second["external_id"]})
    assert taken.status_code == 409
    assert second["batch_id"] in taken.json()["detail"]
    assert len((await service.client.get("/api/batches", params={"limit": 1})).json()["items"]) == 1
    assert (await service.client.get("/api/batches/nope")).status_code == 404
    assert (await service.client.get("/api/batches/99999999999999999999")).status_code == 404


class Slow:
    """Runners that stay: some never claim, some hold after their first item until they are told to go on."""

    def __init__(self, *, silent: int) -> None:
        self.silent = silent
        self.go_on = asyncio.Event()

    async def __call__(self, container: FakeContainer) -> int:
        if self.silent:
            self.silent -= 1
            await container.terminate.wait()
            return 143
        runner = RunnerClient(container.boot_line, container.container_id[-12:])
        try:
            await runner.claim()
            await runner.send(runner.next("stage", stage="running"))
            items = runner.open_items()
            for number, item in enumerate(items):
                if number == 1:
                    stop = asyncio.create_task(container.terminate.wait())
                    go = asyncio.create_task(self.go_on.wait())
                    await asyncio.wait({stop, go}, return_when=asyncio.FIRST_COMPLETED)
                    go.cancel()
                    if stop.done():
                        return 143
                    stop.cancel()
                await runner.send(runner.next("progress", item={**item, "outcome": "passed", "answer": "yes"}))
            await runner.send(runner.next("complete", items=len(items)))
            return 0
        finally:
            await runner.close()


async def half_way(service: Service, slow: Slow) -> dict[str, Any]:
    """A batch with completed none, two running with one item each, one starting, the rest pending."""
    service.engine.behaviour = slow
    made = await new_batch(service)
    async with asyncio.timeout(60):
        while True:
            found = await batch(service, made["batch_id"])
            one_each = [m for m in members(found) if m["status"] == "running" and m["progress"]["done"] == 1]
            if len(one_each) == 3 and found["counts"] == {"pending": 4, "running": 3, "starting": 1}:
                return found
            await asyncio.sleep(0.05)


async def test_the_groups_say_where_each_machine_is(service: Service) -> None:
    slow = Slow(silent=1)
    found = await half_way(service, slow)
    assert found["state"] == "running"
    at_work = [m for m in members(found) if m["status"] == "running"]
    run = await service.run(at_work[0]["run_id"])
    second = run["plan"][0]["problem_ids"][1]
    assert {json.dumps(m["current"]) for m in at_work} == {
        json.dumps({"benchmark": "sample", "problem_id": second, "sample_index": 0})
    }
    assert all(m["last_heartbeat"] for m in at_work)
    assert all(m["current"] is None for m in members(found) if m["status"] != "running")
    lite = found["instance_types"][0]
    assert (lite["instance_type"], lite["state"], lite["current"]["problem_id"]) == ("lite", "running", second)
    slow.go_on.set()


async def test_ended_early_it_drops_what_has_not_begun_and_lets_the_rest_finish(service: Service) -> None:
    # Given a batch with members that wait, start and run
    slow = Slow(silent=1)
    found = await half_way(service, slow)
    # When it is ended
    ending = await service.client.post(f"/api/batches/{found['id']}/end")
    assert ending.status_code == 202
    assert (ending.json()["state"], ending.json()["end_mode"]) == ("ending", "finish")
    assert ending.json()["counts"]["cancelled"] == 4
    slow.go_on.set()
    # Then those that ran complete, the others are cancelled, and every one has its archive
    done = await until(service, found["id"], "ended")
    assert done["counts"] == {"cancelled": 5, "completed": 3}
    assert done["progress"]["done"] == 9
    async with asyncio.timeout(60):
        while any((m["archive"] or {}).get("state") != "stored" for m in members(done)):
            await asyncio.sleep(0.1)
            done = await batch(service, found["id"])
    assert sorted(m["archive"]["kind"] for m in members(done)) == ["error"] * 5 + ["result"] * 3
    assert not service.engine.containers
    # And ending it once more changes nothing
    again = await service.client.post(f"/api/batches/{found['id']}/end", json={"mode": "stop"})
    assert (again.status_code, again.json()["end_mode"], again.json()["state"]) == (202, "finish", "ended")


async def test_an_end_that_is_not_understood_ends_nothing(service: Service) -> None:
    service.engine.behaviour = lambda container: container.terminate.wait()
    made = await new_batch(service)
    for body in ({"mode": "kill"}, {"stop": True}, {"mode": "stop", "now": 1}):
        answer = await service.client.post(f"/api/batches/{made['batch_id']}/end", json=body)
        assert answer.status_code == 422, answer.text
    assert (await batch(service, made["batch_id"]))["end_mode"] is None


async def test_stopped_it_keeps_the_finished_items_and_a_retry_goes_on_from_there(service: Service) -> None:
    slow = Slow(silent=1)
    found = await half_way(service, slow)
    await service.client.post(f"/api/batches/{found['id']}/end")
    await service.client.post(f"/api/batches/{found['id']}/end", json={"mode": "stop"})
    done = await until(service, found["id"], "ended")
    assert (done["counts"], done["progress"]["done"], done["end_mode"]) == ({"cancelled": 8}, 3, "stop")
    failed_only = await service.client.post(f"/api/batches/{found['id']}/retry")
    assert failed_only.status_code == 409
    service.engine.behaviour = http_runner
    retried = await service.client.post(f"/api/batches/{found['id']}/retry", params={"cancelled": True})
    assert retried.status_code == 202
    assert len(retried.json()["run_ids"]) == 8
    whole = await until(service, found["id"], "completed")
    assert (whole["runs"], whole["progress"], whole["end_mode"]) == (8, {"done": 24, "total": 24}, None)
    assert {m["run_id"] for m in members(whole)} == set(retried.json()["run_ids"])
    assert sorted(m["earlier"][0] for m in members(whole)) == sorted(m["run_id"] for m in members(done))


async def test_a_budget_is_shared_out_equally(service: Service) -> None:
    made = await new_batch(service, budget_usd=4.0)
    runs = (await service.client.get("/api/container-runs", params={"batch_id": made["batch_id"]})).json()["items"]
    assert {run["budget_usd"] for run in runs} == {0.5}


class Moody:
    """The second problem passes on one machine only; the third gets another answer each time."""

    def __init__(self) -> None:
        self.answers = 0

    async def __call__(self, container: FakeContainer) -> int:
        runner = RunnerClient(container.boot_line, container.container_id[-12:])
        try:
            await runner.claim()
            kind = container.request.instance_type.name
            items = runner.open_items()
            for number, item in enumerate(items):
                self.answers += 1
                answer = f"answer {self.answers}" if number == 2 else "the same"
                outcome = "time_limit" if (number, kind) == (1, "lite") else "passed"
                await runner.send(runner.next("progress", item={**item, "outcome": outcome, "answer": answer}))
            await runner.send(runner.next("complete", items=len(items)))
            return 0
        finally:
            await runner.close()


async def test_the_matrix_names_problems_whose_verdict_depends_on_the_machine(service: Service) -> None:
    service.engine.behaviour = Moody()
    made = await new_batch(service, models=["demo-strong"])
    await until(service, made["batch_id"], "completed")
    answer = await service.client.get(f"/api/batches/{made['batch_id']}/matrix")
    matrix = answer.json()
    run_id = members(await batch(service, made["batch_id"]))[0]["run_id"]
    _, second, third = (await service.run(run_id))["plan"][0]["problem_ids"]
    assert (matrix["items"], matrix["compared"], matrix["flips"], matrix["varied"]) == (3, 2, 1, 1)
    assert (matrix["fragile_problems"], matrix["varied_problems"]) == ([f"sample/{second}"], [f"sample/{third}"])
    assert matrix["fragile"][0]["verdicts"] == {"basic": {"passed": 2}, "lite": {"time_limit": 2}}
    estimates = {cell["instance_type"]: cell["score"]["estimate"] for cell in matrix["cells"]}
    assert estimates == {"basic": 1.0, "lite": pytest.approx(2 / 3)}
