"""Command benchmarks through the API with the fake engine: what is refused, figures, comparisons, batches."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.fake.container import FakeContainer
from orchestrator.engines.fake.engine import FakeEngine
from tests.conftest import settings_in
from tests.served import RunnerClient, Service, served

pytestmark = pytest.mark.anyio

COMMAND: dict[str, Any] = {"image": "py:3.13", "command": ["python", "bench.py"], "repeats": 4, "warmups": 1}
SPEED = {"py:3.12": 2.0, "py:3.13": 1.0, "py:broken": 1.0}
broken = {"py:broken"}
"""Images in which every repeat fails."""


async def stopwatch(container: FakeContainer) -> int:
    """A runner whose older image takes twice as long, and whose last repeat fails."""
    runner = RunnerClient(container.boot_line, container.container_id[-12:])
    try:
        await runner.claim()
        task = runner.spec["command"]
        await runner.send(runner.next("stage", stage="running", facts={"image_id": f"sha256:{task['image']}"}))
        for item in runner.open_items():
            number = item["sample_index"]
            wall = SPEED[task["image"]] * (1 + 0.01 * number)
            repeat = {
                "exit_code": 0,
                "user_s": wall / 2,
                "system_s": wall / 4,
                "figures": [{"name": "rate", "value": 1 / wall, "unit": "1/s", "better": "larger"}],
                "output": f"{task['argv'][-1]} {number}\n",
            }
            usage = {"cpu_s": 0.75 * wall, "wall_s": wall, "peak_bytes": 1 << 20}
            outcome = "passed" if number < 3 and task["image"] not in broken else "runtime_error"
            detail = "exit 1" if outcome != "passed" else ""
            await runner.send(
                runner.next(
                    "progress",
                    item={**item, "outcome": outcome, "usage": usage, "exit": "exit 0", "repeat": repeat, "detail": detail},
                )
            )
        await runner.send(runner.next("complete", items=task["repeats"]))
        return 0
    finally:
        await runner.close()


@pytest.fixture(scope="module")
async def yard(tmp_path_factory: pytest.TempPathFactory, data_template: Path, anyio_backend: str) -> AsyncIterator[Service]:
    make = settings_in(tmp_path_factory.mktemp("commands"), data_template)
    kind = {"vcpu": 1, "memory_mib": 64, "disk_gb": 1}
    types = {"instance_types": {"one": kind, "two": kind}, "default_instance_type": "one"}
    settings = make(command_images=("py:*",), max_instances=50, vcpu_capacity=100, **types)
    async with served(settings, engine=FakeEngine(behaviour=stopwatch)) as service:
        yield service
        await service.engine.end_all()


async def submit(service: Service, **changed: Any) -> str:
    answer = await service.client.post("/api/container-runs", json={"kind": "command", "command": {**COMMAND, **changed}})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["run_id"])


async def test_a_command_is_a_run_with_its_repeats_as_items(yard: Service) -> None:
    run_id = await submit(yard)
    run = await yard.until(run_id, "completed")
    assert (run["kind"], run["image"], run["benchmarks"]) == ("command", "py:3.13", ["python"])
    assert run["outcomes"] == {"passed": 3, "runtime_error": 1}
    found = (await yard.client.get(f"/api/commands/{run_id}")).json()
    assert found["task"]["argv"] == ["python", "bench.py"]
    assert found["image_id"] == "sha256:py:3.13"
    assert [each["number"] for each in found["repeats"]] == [1, 2, 3, 4]
    figures = {each["name"]: each for each in found["figures"]}
    assert list(figures) == ["wall_s", "cpu_s", "user_s", "system_s", "peak_bytes", "rate"]
    assert figures["wall_s"]["values"] == [1.0, 1.01, 1.02], "a repeat that failed counts in no figure"
    assert figures["wall_s"]["mean"] == pytest.approx(1.01)
    assert figures["wall_s"]["low"] < 1.0
    assert figures["wall_s"]["high"] > 1.02
    archive = await yard.client.get(f"/api/container-runs/{run_id}/archive")
    with tarfile.open(fileobj=io.BytesIO(archive.content)) as tar:
        output = tar.extractfile("output.txt")
        assert output is not None
        said = output.read().decode()
    assert "=== repeat 1: passed, exit 0" in said
    assert "bench.py 3" in said
    assert (await yard.client.post(f"/api/container-runs/{run_id}/regrade")).status_code == 409
    assert (await yard.client.post(f"/api/container-runs/{run_id}/retry")).status_code == 409


async def test_runs_are_compared_with_the_first(yard: Service) -> None:
    ids = [await submit(yard, image=image) for image in ("py:3.12", "py:3.13")]
    for run_id in ids:
        await yard.until(run_id, "completed")
    found = (await yard.client.get("/api/commands/compare", params={"run": ids})).json()
    verdicts = {each["figure"]: each for each in found["comparisons"]}
    assert verdicts["wall_s"]["verdict"] == "better"
    assert verdicts["wall_s"]["ratio"]["estimate"] == pytest.approx(0.5)
    assert verdicts["wall_s"]["sentence"].startswith("faster: 0.5 times (")
    assert verdicts["rate"]["verdict"] == "better", "larger is better"
    assert verdicts["peak_bytes"]["verdict"] == "no_difference"
    page = await yard.client.get("/compare", params={"run": ids}, headers={"accept": "text/html"})
    assert page.status_code == 200
    assert "faster" in page.text
    for path in (f"/runs/{ids[0]}", f"/runs/{ids[0]}/items/0", "/runs", "/"):
        assert (await yard.client.get(path, headers={"accept": "text/html"})).status_code == 200


async def test_a_batch_over_images_and_instance_types(yard: Service) -> None:
    body = {"commands": [COMMAND], "images": ["py:3.12", "py:3.13"], "instance_types": ["one", "two"],
            "runs_per_instance_type": 2}  # fmt: skip
    answer = await yard.client.post("/api/batches", json=body)
    assert answer.status_code == 202, answer.text
    made = answer.json()
    assert made["runs"] == 8
    listed = (await yard.client.get("/api/container-runs", params={"batch_id": made["batch_id"]})).json()["items"]
    for run in listed:
        await yard.until(run["id"], "completed")
    found = (await yard.client.get("/api/commands/compare", params={"batch": made["batch_id"]})).json()
    assert [(group["image"], group["instance_type"], group["repeats"], group["failed"]) for group in found["groups"]] == [
        ("py:3.12", "one", 6, 2), ("py:3.13", "one", 6, 2), ("py:3.12", "two", 6, 2), ("py:3.13", "two", 6, 2)
    ]  # fmt: skip
    walls = {
        (each["group"], each["against"]): each["verdict"] for each in found["comparisons"] if each["figure"] == "wall_s"
    }
    assert walls == {
        ("py:3.13 on one", "py:3.12 on one"): "better",
        ("py:3.12 on two", "py:3.12 on one"): "no_difference",
        ("py:3.13 on two", "py:3.12 on two"): "better",
        ("py:3.13 on two", "py:3.13 on one"): "no_difference",
    }
    page = await yard.client.get(f"/batches/{made['batch_id']}", headers={"accept": "text/html"})
    assert page.status_code == 200
    assert "faster" in page.text


async def finished_batch(service: Service, status: str, **body: Any) -> dict[str, Any]:
    answer = await service.client.post("/api/batches", json=body)
    assert answer.status_code == 202, answer.text
    made: dict[str, Any] = answer.json()
    for run in (await service.client.get("/api/container-runs", params={"batch_id": made["batch_id"]})).json()["items"]:
        await service.until(run["id"], status)
    return made


async def test_a_command_of_which_every_repeat_fails_has_failed(yard: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await finished_batch(yard, "failed", commands=[{**COMMAND, "image": "py:broken"}])
    batch = (await yard.client.get(f"/api/batches/{made['batch_id']}")).json()
    assert (batch["state"], batch["counts"]) == ("failed", {"failed": 1})
    (member,) = batch["instance_types"][0]["members"]
    run = (await yard.client.get(f"/api/container-runs/{member['run_id']}")).json()
    assert (run["reason"], run["progress"], run["score"]) == ("command_failed", {"done": 4, "total": 4}, None)
    assert run["error_message"].endswith("The first one: exit 1: bench.py 0")
    archive = await yard.client.get(f"/api/container-runs/{run['id']}/archive")
    assert archive.headers["content-disposition"].endswith('-error.tar.gz"')
    found = (await yard.client.get("/api/commands/compare", params={"batch": made["batch_id"]})).json()
    assert [(group["repeats"], group["failed"], group["figures"]) for group in found["groups"]] == [(0, 4, [])]
    page = await yard.client.get(f"/batches/{made['batch_id']}", headers={"accept": "text/html"})
    assert "no repeat passed" in page.text
    # Taken up again, the repeats that failed are done anew
    monkeypatch.setattr(f"{__name__}.broken", frozenset())
    again = await yard.client.post(f"/api/container-runs/{run['id']}/retry")
    assert again.status_code == 202, again.text
    ended = await yard.until(again.json()["run_id"], "completed")
    assert (ended["progress"], ended["passed"]) == ({"done": 4, "total": 4}, 3)


async def test_a_batch_of_one_cell_has_its_figures(yard: Service) -> None:
    made = await finished_batch(yard, "completed", commands=[COMMAND])
    found = (await yard.client.get("/api/commands/compare", params={"batch": made["batch_id"]})).json()
    (group,) = found["groups"]
    assert (group["label"], group["repeats"], group["failed"]) == ("py:3.13 on one", 3, 1)
    assert "wall_s" in [figure["name"] for figure in group["figures"]]
    assert found["comparisons"] == []
    page = await yard.client.get(f"/batches/{made['batch_id']}", headers={"accept": "text/html"})
    assert "wall_s" in page.text


async def test_files_go_with_a_run_and_belong_to_what_is_compared(yard: Service) -> None:
    shared = {"name": "shared.txt", "content": "for all"}
    own = {"name": "bench.py", "content": "print(1)\n", "executable": True}
    made = await finished_batch(yard, "completed", commands=[{**COMMAND, "files": [own]}], files=[shared])
    (run,) = (await yard.client.get("/api/container-runs", params={"batch_id": made["batch_id"]})).json()["items"]
    found = (await yard.client.get(f"/api/commands/{run['id']}")).json()
    digest = hashlib.sha256(b"print(1)\n").hexdigest()
    assert found["task"]["files"][1] == {"name": "bench.py", "size_bytes": 9, "sha256": digest, "executable": True}
    assert [each["name"] for each in found["task"]["files"]] == ["shared.txt", "bench.py"]
    batch = (await yard.client.get(f"/api/batches/{made['batch_id']}")).json()
    assert batch["request"]["commands"][0]["files"][0]["sha256"] == digest
    assert "print(1)" not in json.dumps(batch)
    with tarfile.open(
        fileobj=io.BytesIO((await yard.client.get(f"/api/container-runs/{run['id']}/archive")).content)
    ) as tar:
        about = json.loads((tar.extractfile("run.json") or io.BytesIO()).read())
    assert base64.b64decode(about["plan"][0]["command"]["files"][1]["content"]) == b"print(1)\n"
    # Run again from its page, the files come along; other files make it another benchmark
    form = await yard.client.get(f"/runs/new/command?like={run['id']}", headers={"accept": "text/html"})
    assert "shared.txt, bench.py" in form.text
    fields = {"image": "py:3.13", "command": "python bench.py", "repeats": "4", "files_of": run["id"]}
    again = await yard.client.post(
        "/runs/new/command", data=fields, headers={"accept": "text/html", "origin": str(yard.client.base_url).rstrip("/")}
    )
    assert again.status_code == 303, again.text
    again_id = again.headers["location"].rpartition("/")[2]
    assert (await yard.client.get(f"/api/commands/{again_id}")).json()["task"]["files"] == found["task"]["files"]
    other = await submit(yard, files=[shared, {**own, "content": "print(2)\n"}])
    for run_id in (again_id, other):
        await yard.until(run_id, "completed")
    compared = (await yard.client.get("/api/commands/compare", params={"run": [run["id"], other]})).json()
    assert "command or files differ" in compared["notes"][0]


async def test_one_instance_type_at_two_providers_is_two_cells(yard: Service) -> None:
    body = {"commands": [COMMAND], "instance_types": {"local": ["one", "two"], "lab": ["one"]}}
    made = (await yard.client.post("/api/batches", json=body)).json()
    for run in (await yard.client.get("/api/container-runs", params={"batch_id": made["batch_id"]})).json()["items"]:
        if run["provider"] == "local":
            await yard.until(run["id"], "completed")
    found = (await yard.client.get("/api/commands/compare", params={"batch": made["batch_id"]})).json()
    assert [(group["label"], group["provider"], group["repeats"]) for group in found["groups"]] == [
        ("py:3.13 on one of local", "local", 3), ("py:3.13 on two of local", "local", 3), ("py:3.13 on one of lab", "lab", 0)
    ]  # fmt: skip
    pairs = {(each["group"], each["against"]) for each in found["comparisons"]}
    assert pairs == {("py:3.13 on two of local", "py:3.13 on one of local")}
    await yard.client.post(f"/api/batches/{made['batch_id']}/end", json={"mode": "stop"})


async def test_a_command_has_neither_model_nor_score(yard: Service) -> None:
    made = await finished_batch(yard, "completed", commands=[COMMAND])
    batch_id = made["batch_id"]
    (run,) = (await yard.client.get("/api/container-runs", params={"batch_id": batch_id})).json()["items"]
    assert (run["model"], run["model_id"], run["score"]) == (None, None, None)
    assert (await yard.client.get(f"/api/container-runs/{run['id']}/score")).json()["benchmarks"] == {}
    (cell,) = (await yard.client.get(f"/api/batches/{batch_id}/matrix")).json()["cells"]
    assert (cell["model"], cell["score"]) == (None, None)
    with tarfile.open(
        fileobj=io.BytesIO((await yard.client.get(f"/api/container-runs/{run['id']}/archive")).content)
    ) as tar:
        files = {name: (tar.extractfile(name) or io.BytesIO()).read().decode() for name in tar.getnames()}
    about = json.loads(files["run.json"])
    assert (about["model"], about["run"]["model_id"], about["run"]["score"]) == (None, None, None)
    assert json.loads(files["manifest.json"])["model"] is None
    assert not [name for name, text in files.items() if "no-model" in text]
    paths = [
        f"/api/container-runs/{run['id']}",
        f"/api/container-runs/{run['id']}/export?format=json",
        f"/api/container-runs/{run['id']}/stream",
        f"/api/batches/{batch_id}",
        f"/api/commands/{run['id']}",
        "/api/models?archived=true",
        "/api/machine-costs?by=model",
        "/api/jobs",
        f"/batches/{batch_id}",
        f"/runs/{run['id']}",
        f"/runs/{run['id']}/items/0",
        "/runs",
        "/fleet",
        "/",
        "/models",
    ]
    for path in paths:
        answer = await yard.client.get(path, headers={} if path.startswith("/api") else {"accept": "text/html"})
        assert answer.status_code == 200, path
        assert "no-model" not in answer.text, path


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"image": "evil:1"}, "Set BENCHYARD_COMMAND_IMAGES"),
        ({"image": "team/py:1"}, "is not allowed"),
        ({"repeats": 0}, "command.repeats"),
        ({"command": []}, "command.command"),
        ({"command": "  "}, "say what to run"),
        ({"env": {"OPENAI_API_KEY": "x"}}, "looks like a secret"),
        ({"env": {"A B": "x"}}, "cannot be the name"),
        ({"workdir": "here"}, "command.workdir"),
        ({"figures": [{"pattern": "("}]}, "not a regular expression"),
        ({"figures": [{"pattern": "x"}]}, "name a group"),
        ({"figures": [{"unit": "s"}]}, "a figure needs one"),
        ({"surprise": 1}, "unknown field"),
        ({"files": ["bench.py"]}, "the command line reads files"),
        ({"files": [{"name": "../x", "content": ""}]}, "is not a relative path"),
        ({"files": [{"name": "a"}]}, "either content or content_base64"),
        ({"files": [{"name": "a", "content_base64": "?"}]}, "not base64"),
        ({"files": [{"name": "a", "content": ""}, {"name": "a", "content": ""}]}, "named twice"),
        ({"files": [{"name": "a", "content": ""}, {"name": "a/b", "content": ""}]}, "both a file and a directory"),
        ({"files": [{"name": "a", "content": "x" * (1 << 18)}, {"name": "b", "content": "x"}]}, "belongs into the image"),
        ({"files": [{"name": str(number), "content": ""} for number in range(21)]}, "command.files"),
        ({"files": [{"name": "a", "content": ""}], "workdir": "/tmp"}, "either files or workdir"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_what_is_refused(yard: Service, changed: dict[str, Any], said: str) -> None:
    body = {"kind": "command", "command": {**COMMAND, **changed}}
    answer = await yard.client.post("/api/container-runs", json=body)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ({}, 422, "either run"),
        ({"run": ["x"]}, 422, "two runs"),
        ({"run": ["x", "y"]}, 404, "there is no run"),
        ({"batch": "nothing"}, 404, "no batch"),
    ],
)
async def test_what_cannot_be_compared(yard: Service, query: dict[str, Any], status: int, said: str) -> None:
    answer = await yard.client.get("/api/commands/compare", params=query)
    assert (answer.status_code, said in answer.json()["detail"]) == (status, True), answer.text
