"""Task runners: claim, heartbeat, complete, fail; leases that are lost; what is refused."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.service.tasks.conftest import PROVIDER, Tasks, passed

if TYPE_CHECKING:
    from tests.served import Service

pytestmark = pytest.mark.anyio


async def test_a_task_from_claim_to_figures(service: Service, tasks: Tasks) -> None:
    run_id = await tasks.new(
        ["echo", "it's"], env={"LEASE": "x", "lease": "y"}, figures=[{"name": "score", "better": "larger"}]
    )
    task = await tasks.claim(instance_type="standard-1", runner="box-1")
    assert (task["status"], task["run_id"], task["attempt"], task["todo"]) == ("task", run_id, 1, [1, 2])
    assert task["command"]["argv"] == ["echo", "it's"]
    assert next(iter(task)) == "command"
    run = await service.run(run_id)
    assert run["status"] == "running"
    agents = (await service.client.get("/api/agents")).json()["items"]
    assert [(each["name"], each["engine"], each["running"]) for each in agents] == [("box-1", "task", [run_id])]

    beat = await tasks.post("/heartbeat", **tasks.about(task), results=passed(1), message="one is done")
    assert (beat["status"], beat["repeats_done"], beat["repeats"]) == ("ok", 1, 2)
    missing = await tasks.post("/complete", 409, **tasks.about(task))
    assert "repeats 2 of 2 are missing" in missing["detail"]
    assert (await service.run(run_id))["status"] == "running"
    figures = [{"name": "score", "value": 7, "unit": "points"}]
    done = await tasks.post(
        "/api/tasks/complete", **tasks.about(task), results=passed(1, 2, user_s=0.25, peak_bytes=1 << 30, figures=figures)
    )
    assert done["status"] == "completed"
    assert (await tasks.post("/complete", **tasks.about(task)))["status"] == "completed", "asking again is harmless"

    told = (await service.client.get(f"/api/commands/{run_id}")).json()
    assert (told["status"], told["self_reported"]) == ("completed", True)
    assert [repeat["wall_s"] for repeat in told["repeats"]] == [1.5, 2.5]
    by_name = {each["name"]: each for each in told["figures"]}
    assert "system_s" not in by_name, "what was not reported is no figure of zero"
    assert by_name["score"]["better"] == "larger"
    ended = await service.until(run_id, "completed")
    (attempt,) = ended["attempts"]
    assert attempt["facts"]["self_reported"] is True
    assert (attempt["vcpu_s"], attempt["gib_s"]) == (0.25, 2.5)
    assert "one is done" in (await service.client.get(f"/api/container-runs/{run_id}/logs")).text
    assert await tasks.claim() == {**await tasks.claim(), "status": "done", "open": 0}


async def test_only_commands_of_the_named_provider_are_given_out(service: Service, tasks: Tasks) -> None:
    await tasks.new(provider="other")
    benchmark = await service.new_run(provider=PROVIDER)
    assert (await tasks.claim())["status"] == "done"
    run_id = await tasks.new()
    assert (
        (await tasks.claim(instance_type="basic"))["status"] == "done"
        if "basic" in service.settings.instance_types
        else True
    )
    (first, second) = await asyncio.gather(
        tasks.post("/claim", provider=PROVIDER, runner="a"), tasks.post("/claim", provider=PROVIDER, runner="b")
    )
    given = [each for each in (first, second) if each["status"] == "task"]
    assert [each["run_id"] for each in given] == [run_id], "a task is given once"
    assert (await service.run(benchmark))["status"] == "pending"
    assert (await service.client.get("/api/fleet")).status_code == 200


async def test_what_is_refused(service: Service, tasks: Tasks) -> None:
    assert "local" in (await tasks.post("/claim", 422, provider="local"))["detail"]
    assert "no 'huge'" in (await tasks.post("/claim", 422, provider=PROVIDER, instance_type="huge"))["detail"]
    await tasks.post("/claim", 422, provider="a b")
    await tasks.post("/claim", 422, provider=PROVIDER, shoe_size=4)
    for path in ("/heartbeat", "/complete", "/fail"):
        await tasks.post(path, 422, task_id="x", lease="y")
        assert "claim another" in (await tasks.post(path, 409, task_id="01-none.1", lease="y"))["detail"]
    await tasks.new()
    task = await tasks.claim()
    for path in ("/heartbeat", "/complete", "/fail"):
        await tasks.post(path, 409, task_id=task["task_id"], lease="another")
    wrong: list[list[dict[str, Any]]] = [
        passed(3),
        passed(1, 1),
        [{"repeat": 1, "wall_s": -1}],
        [{"repeat": 1, "wall_s": 1, "figures": [{"name": "", "value": 1}]}],
    ]
    for results in wrong:
        await tasks.post("/heartbeat", 422, **tasks.about(task), results=results)
    reader = await service.client.post("/api/tokens", json={"name": "reader", "scope": "run"})
    headers = {"authorization": f"Bearer {reader.json()['token']}"}
    for path in ("/claim", "/heartbeat", "/complete", "/fail", "/api/tasks/claim"):
        assert (await service.stranger.post(path, json={}, headers=headers)).status_code == 403
        answer = await service.stranger.post(path, json={})
        assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")
    assert (await tasks.http.get("/api/container-runs")).status_code == 403, "and its token is good for nothing else"


async def test_a_runner_that_dies_loses_its_task_and_the_rest_is_done_again(service: Service, tasks: Tasks) -> None:
    run_id = await tasks.new(repeats=3)
    old = await tasks.claim()
    await tasks.post("/heartbeat", **tasks.about(old), results=passed(2))
    new = await tasks.claim(runner="another")
    assert (new["run_id"], new["attempt"], new["todo"]) == (run_id, 2, [1, 3])
    for path in ("/heartbeat", "/fail"):
        await tasks.post(path, 409, **tasks.about(old))
    await tasks.post("/complete", 409, **tasks.about(old), results=passed(1, 2, 3))
    assert (await tasks.post("/complete", **tasks.about(new), results=passed(1, 3)))["status"] == "completed"
    run = await service.until(run_id, "completed")
    assert [each["reason"] for each in run["attempts"]] == ["heartbeat_lost", None]


async def test_a_task_that_is_given_up_is_tried_again_and_not_for_ever(service: Service, tasks: Tasks) -> None:
    run_id = await tasks.new()
    for number in (1, 2, 3):
        task = await tasks.claim()
        assert task["attempt"] == number
        said = await tasks.post("/fail", **tasks.about(task), reason="image_missing", message=f"no such image\x00 {number}")
        assert said["status"] == "retrying"
        await tasks.post("/heartbeat", 409, **tasks.about(task))
    run = await service.until(run_id, "failed")
    assert (run["reason"], run["error_message"]) == ("image_missing", "no such image\N{REPLACEMENT CHARACTER} 3")
    hopeless = await tasks.new()
    task = await tasks.claim()
    said = await tasks.post("/fail", **tasks.about(task), message="the command is not here", retry=False)
    assert said["status"] == "failed"
    run = await service.run(hopeless)
    assert (run["status"], run["reason"], len(run["attempts"])) == ("failed", "runner_error", 1)
    await tasks.post("/fail", 422, **tasks.about(task), reason="bad mood")


async def test_a_command_of_which_no_repeat_passes_has_failed(service: Service, tasks: Tasks) -> None:
    run_id = await tasks.new()
    task = await tasks.claim()
    results = [{"repeat": 1, "exit_code": 3, "wall_s": 1}, {"repeat": 2, "exit_code": 124, "wall_s": 9, "timed_out": True}]
    assert (await tasks.post("/complete", **tasks.about(task), results=results))["status"] == "failed"
    run = await service.run(run_id)
    assert (run["status"], run["reason"], run["outcomes"]) == (
        "failed",
        "command_failed",
        {"runtime_error": 1, "time_limit": 1},
    )


async def test_a_cancelled_task_is_stopped_or_runs_out(service: Service, tasks: Tasks) -> None:
    polite, deaf = await tasks.new(), await tasks.new()
    held = {(task := await tasks.claim())["run_id"]: task for _ in range(2)}
    for run_id in (polite, deaf):
        assert (await service.client.post(f"/api/container-runs/{run_id}/cancel")).status_code == 202
        assert (await tasks.post("/heartbeat", **tasks.about(held[run_id])))["status"] == "cancel"
    await tasks.post("/fail", **tasks.about(held[polite]), message="stopped on request")
    assert (await service.until(polite, "cancelled", "failed"))["status"] == "cancelled"
    async with asyncio.timeout(60):
        while (await service.run(deaf))["status"] == "running":
            await tasks.http.post("/heartbeat", json=tasks.about(held[deaf]))
            await service.pass_time(0.3)
    assert (await service.run(deaf))["status"] == "cancelled"


async def test_signed_addresses_take_files_and_nothing_else(service: Service, tasks: Tasks) -> None:
    run_id = await tasks.new(["printf", "%s", "a'b\n$HOME"], env={"X": "it's"}, workdir="/")
    task = await tasks.claim(uploads=["output.txt", "trace.json"])
    script, upload = task["script_url"], task["uploads"]["trace.json"]
    async with httpx.AsyncClient(timeout=60) as stranger:
        text = (await stranger.get(script)).text
        process = await asyncio.create_subprocess_exec("sh", "-c", text, stdout=asyncio.subprocess.PIPE)
        assert (await process.communicate())[0] == b"a'b\n$HOME"
        assert (await stranger.put(upload, content=b"{}")).status_code == 204
        assert (await stranger.put(upload, content=b"[]")).status_code == 204
        for bad in (
            upload.replace("trace.json", "other.json"),
            upload.replace("signature=", "signature=0"),
            upload.replace("expires=", "expires=9"),
            script.replace("command.sh", "artefacts/x"),
        ):
            assert (await stranger.put(bad, content=b"x")).status_code == 403, bad
        assert (await stranger.get(script.replace("signature=", "signature=0"))).status_code == 403
        got = await service.client.get(f"/api/container-runs/{run_id}/artefacts/trace.json")
        assert got.content == b"[]"
        await tasks.post("/complete", **tasks.about(task), results=passed(1, 2))
        async with asyncio.timeout(60):
            while (await service.run(run_id))["attempts"][0]["removed_at"] is None:
                await asyncio.sleep(0.02)
        assert (await stranger.put(upload, content=b"late")).status_code == 409
        assert (await stranger.get(script)).status_code == 409


async def test_a_command_with_files_has_them_in_its_script(service: Service, tasks: Tasks) -> None:
    content = base64.b64encode(b"#!/bin/sh\ncat data/it.txt; echo done >&2; exit 4\n").decode()
    files = [
        {"name": "run.sh", "content_base64": content, "executable": True},
        {"name": "data/it.txt", "content_base64": base64.b64encode(b"bytes \xff '\n").decode()},
    ]
    await tasks.new(["./run.sh"], files=files)
    task = await tasks.claim()
    text = (await service.stranger.get(task["script_url"])).text
    process = await asyncio.create_subprocess_exec("sh", "-c", text, stdout=asyncio.subprocess.PIPE)
    assert ((await process.communicate())[0], process.returncode) == (b"bytes \xff '\n", 4)


async def test_a_runner_that_is_dismissed_is_told_that_it_is_done(service: Service, tasks: Tasks) -> None:
    await tasks.post("/claim", provider=PROVIDER)
    (agent,) = (await service.client.get("/api/agents")).json()["items"]
    assert (await service.client.delete(f"/api/agents/{agent['id']}")).status_code == 204
    await tasks.new()
    assert (await tasks.post("/claim", provider=PROVIDER))["detail"] == "this task runner was asked to stop"


@pytest.mark.parametrize("reads_before", range(6))
async def test_a_task_claimed_in_the_middle_of_a_round_is_kept(service: Service, tasks: Tasks, reads_before: int) -> None:
    await tasks.new()
    db = service.services.db
    read, counted, claimed = db.read, 0, []

    async def claim_between_reads(work: Any) -> Any:
        nonlocal counted
        if work.__module__ == "orchestrator.runs.queries":  # one that the reconciler makes
            counted += 1
            if counted == reads_before + 1:
                claimed.append(await tasks.claim())
        return await read(work)

    db.read = claim_between_reads  # type: ignore[method-assign]
    try:
        for _ in range(6):
            await service.pass_time(0.1)
    finally:
        db.read = read  # type: ignore[method-assign]
    (task,) = claimed
    assert (await tasks.post("/heartbeat", **tasks.about(task)))["status"] == "ok"
