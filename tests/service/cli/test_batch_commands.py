"""`benchyard batch` and `replay` against a real service with the fake engine."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.cli.commands.measuring import batches as batch_commands
from orchestrator.cli.errors import BadUsage
from orchestrator.cli.files.batch_config import read_config
from orchestrator.cli.view.batches import matrix_sentences
from orchestrator.engines.fake.container import FakeContainer
from tests.served import TOKEN, RunnerClient, Service
from tests.unit.cli.command_line import Benchyard

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
SMALL = {"models": ["demo-strong"], "benchmarks": ["sample"], "sample_size": 2, "instance_types": ["lite", "basic"]}


class Judge:
    """Answers each item with its own text and gives it the outcome asked for."""

    def __init__(self, outcome: str = "passed") -> None:
        self.outcome = outcome

    async def __call__(self, container: FakeContainer) -> int:
        runner = RunnerClient(container.boot_line, container.container_id[-12:])
        try:
            await runner.claim()
            return await self.work(runner)
        finally:
            await runner.close()

    async def work(self, runner: RunnerClient) -> int:
        items = runner.open_items()
        for item in items:
            more = {"answer": f"answer to {item['problem_id']}", "code": "print()", "calls": [{"call_key": "k"}]}
            await runner.send(runner.next("progress", item={**item, "outcome": self.outcome, **more}))
        await runner.send(runner.next("complete", items=len(items)))
        return 0


class Held(Judge):
    """Works only when it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    async def __call__(self, container: FakeContainer) -> int:
        runner = RunnerClient(container.boot_line, container.container_id[-12:])
        try:
            await runner.claim()
            while not self.go_on.is_set():
                if container.terminate.is_set():
                    return 143
                await asyncio.sleep(0.02)
            return await self.work(runner)
        finally:
            await runner.close()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "batch.json"
    path.write_text(json.dumps(SMALL))
    return path


def test_a_batch_is_run_shown_and_fetched(benchyard: Benchyard, service: Service, config: Path, tmp_path: Path) -> None:
    service.engine.behaviour = Judge()
    ended = benchyard("batch", "run", str(config), "--out", str(tmp_path / "results"), "--json")
    assert ended.code == 0, ended.err
    batch, matrix = ended.json["batch"], ended.json["matrix"]
    assert (batch["state"], matrix["compared"], matrix["flips"]) == ("completed", 2, 0)
    folder = Path(ended.json["results"])
    assert folder == tmp_path / "results" / str(batch["external_id"])
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    runs = {group["instance_type"]: group["members"][0]["run_id"] for group in batch["instance_types"]}
    assert names == sorted(
        ["batch.json", "matrix.json", *(f"{kind}-{run_id}/result.tar.gz" for kind, run_id in runs.items())]
    )
    shown = benchyard("batch", "show", str(batch["external_id"]))
    assert "0 of 2 items with the same answer pass on one instance type" in shown.out
    assert all(run_id in shown.out for run_id in runs.values())
    assert str(batch["external_id"]) in benchyard("batch", "list").out
    shutil.rmtree(folder / f"lite-{runs['lite']}")
    again = benchyard("batch", "fetch", batch["id"], "--out", str(tmp_path / "results"), "--json")
    assert len(again.json["new"]) in (1, 2)  # the other one is fetched again only if its archive was not made yet
    assert "lite" in again.json["new"][0]


def test_the_machines_of_a_provider_are_asked_for(benchyard: Benchyard, service: Service, config: Path) -> None:
    made = benchyard("batch", "run", str(config), "--provider", "lab", "--detach", "--json").json
    runs = benchyard("batch", "end", str(made["external_id"]), "--stop", "--json").json
    assert (runs["request"]["provider"], runs["state"], made["runs"]) == ("lab", "ended", 2)


def test_an_archive_is_graded_again_and_what_moved_is_said(
    benchyard: Benchyard, service: Service, config: Path, tmp_path: Path
) -> None:
    service.engine.behaviour = Judge()
    folder = Path(benchyard("batch", "run", str(config), "--out", str(tmp_path), "--json").json["results"])
    archive = next(folder.rglob("lite-*/result.tar.gz"))
    same = benchyard("replay", str(archive), "--json")
    assert same.code == 0, same.err
    assert same.json["same"] is True
    assert same.json["grading_digest"] == same.json["replayed_digest"]
    assert (same.json["verdicts"], same.json["not_graded_again"], same.json["moved"]) == (2, 0, [])
    whole = Path(benchyard("batch", "fetch", folder.name, "--whole", "--out", str(tmp_path), "--json").json["new"][0])
    all_same = benchyard("replay", str(whole), "--json").json
    assert (all_same["same"], len(all_same["runs"]), len(all_same["replayed_as"])) == (True, 2, 1)
    assert all(run["replayed_digest"] == same.json["grading_digest"] for run in all_same["runs"])
    service.engine.behaviour = Judge("time_limit")
    assert "4 of 4 verdicts changed" in benchyard("replay", str(whole)).err
    other = benchyard("replay", str(archive))
    assert other.code == 1
    assert "0 of 2 are the same" in other.out
    assert "time_limit" in other.out
    assert "2 of 2 verdicts changed" in other.err


def test_an_archive_of_another_dataset_or_none_is_refused(
    benchyard: Benchyard, service: Service, config: Path, tmp_path: Path
) -> None:
    service.engine.behaviour = Judge()
    folder = Path(benchyard("batch", "run", str(config), "--out", str(tmp_path), "--json").json["results"])
    archive = next(folder.rglob("lite-*/result.tar.gz"))
    broken = tmp_path / "other.tar.gz"
    with tarfile.open(archive) as old, tarfile.open(broken, "w:gz") as new:
        for member in old:
            content = (old.extractfile(member) or io.BytesIO()).read()
            if member.name == "manifest.json":
                content = content.replace(b'"format"', b'"farmat"')
            member.size = len(content)
            new.addfile(member, io.BytesIO(content))
    assert "this version reads" in benchyard("replay", str(broken)).err
    text = tmp_path / "text.tar.gz"
    text.write_text("hello")
    assert "cannot be read" in benchyard("replay", str(text)).err
    assert benchyard("replay", str(tmp_path / "none")).code == 2


class Terminal:
    """The command at a terminal of its own, as somebody sits there."""

    def __init__(self, *words: str) -> None:
        self._own, other = pty.openpty()
        command = [sys.executable, "-m", "orchestrator.cli", *words]
        self._process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other, start_new_session=True)
        os.close(other)
        self.said = ""

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def type(self, text: str) -> None:
        os.write(self._own, text.encode())

    def until(self, text: str, timeout_s: float = 60) -> None:
        deadline = time.monotonic() + timeout_s
        while text not in self.said:
            assert time.monotonic() < deadline, self.said
            if select.select([self._own], [], [], 0.2)[0]:
                try:
                    self.said += os.read(self._own, 4096).decode("utf-8", "replace")
                except OSError:  # its end
                    assert text in self.said, self.said

    def ended(self) -> int:
        code = self._process.wait(60)
        os.close(self._own)
        return code


@pytest.mark.parametrize(
    ("answer", "sentence", "code", "counts"),
    [
        ("l", "continues: benchyard batch show", 130, {"pending": 4, "running": 4}),
        ("e", "4 of 8 runs were cancelled", 4, {"cancelled": 4, "completed": 4}),
        ("c", "none of its containers is left", 4, {"cancelled": 8}),
    ],
    ids=["leave", "end", "cancel"],
)
def test_interrupted_it_asks_what_shall_become_of_the_batch(
    service: Service, config: Path, tmp_path: Path, answer: str, sentence: str, code: int, counts: dict[str, int]
) -> None:
    # Given a batch of which a half runs, followed at a terminal
    held = service.engine.behaviour = Held()
    config.write_text(json.dumps({**SMALL, "runs_per_instance_type": 4}))
    http = httpx.Client(base_url=service.url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60)

    terminal = Terminal("batch", "run", str(config), "--out", str(tmp_path / "results"))
    terminal.until(" has 8 runs.")
    found = re.search(r"Batch \d+ \((.*?)\) has", terminal.said)
    assert found

    def batch() -> dict[str, Any]:
        body: dict[str, Any] = http.get(f"/api/batches/{found[1]}").json()
        return body

    until(lambda: batch()["counts"].get("running") == 4)
    terminal.until("2 running")
    # When somebody interrupts and answers
    terminal.interrupt()
    terminal.until("[l]eave it running, [e]nd early, [c]ancel and clean up")
    terminal.type(f"{answer}\n")
    if answer == "e":
        until(lambda: batch()["state"] == "ending")
        held.go_on.set()
    terminal.until(sentence)
    # Then the batch does what was answered
    assert terminal.ended() == code
    assert batch()["counts"] == counts
    assert len(list((tmp_path / "results").rglob("*.tar.gz"))) == (8 if answer == "e" else 0)
    http.post(f"/api/batches/{found[1]}/end", json={"mode": "stop"})
    until(lambda: batch()["state"] in ("ended", "completed"))
    http.close()


def until(is_so: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_nobody_to_ask_means_that_it_goes_on(
    benchyard: Benchyard, service: Service, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.engine.behaviour = Held()

    def interrupted(_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(batch_commands.Follower, "until_over", interrupted)
    ended = benchyard("batch", "run", str(config))
    assert ended.code == 130
    found = re.search(r"to end it: benchyard batch end (\d+);", ended.err)
    assert found
    name = found[1]
    stopped = benchyard("batch", "end", name, "--stop", "--json")
    assert stopped.json["end_mode"] == "stop"
    until(lambda: benchyard("batch", "show", name, "--json").json["state"] == "ended")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("batch-*")), ids=lambda path: path.name)
def test_every_example_is_a_batch(path: Path) -> None:
    from orchestrator.batches.schemas import BatchCreate, CommandBatchCreate

    config = read_config(path)
    (CommandBatchCreate if "commands" in config else BatchCreate).model_validate(config)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.json", "{", "is not JSON"),
        ("a.yaml", "models: [a\n", "is not YAML"),
        ("a.yaml", "- a\n", "not a list of names and values"),
        ("a.yaml", "!!python/object/apply:os.system ['true']", "is not YAML"),
        ("a.json", "\udcff", "not a text file"),
        ("a.json", '{"budget_usd": NaN}', "cannot be sent"),
        ("a.json", '{"name": "\\ud800"}', "cannot be sent"),
        ("a.json", '{"models": ' + "[" * 50_000 + "]" * 50_000 + "}", "nested too deeply"),
        ("a.yaml", "models: " + "[" * 1_000 + "]" * 1_000, "nested too deeply"),
        ("a.yaml", "budget_usd: .inf\n", "cannot be sent"),
        ("a.yaml", "external_id: " + "9" * 5_000, "is not YAML"),
        ("a.yaml", "name: 2026-02-30\n", "is not YAML"),
        ("a.yaml", "name: !!binary aGk=\n", "cannot be sent"),
        ("a.yaml", "models: !!set {demo-strong}\n", "cannot be sent"),
        ("a.yaml", "models: &all [*all]\n", "cannot be sent"),
        (
            "a.yaml",
            "x0: &x0 [a, a]\n" + "".join(f"x{n + 1}: &x{n + 1} [*x{n}, *x{n}]\n" for n in range(30)),
            "larger than 1 MiB",
        ),
    ],
)
def test_what_is_no_description_of_a_batch_is_told(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadUsage, match=sentence):
        read_config(tmp_path / name)


def test_days_are_texts_wherever_they_are_and_a_mark_at_the_beginning_of_a_file_is_none_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("name: 2026-01-02\nparams: {since: [2026-01-03]}\n")
    assert read_config(tmp_path / "a.yaml") == {"name": "2026-01-02", "params": {"since": ["2026-01-03"]}}
    (tmp_path / "a.json").write_text('{"models": ["é"]}', encoding="utf-8-sig")
    assert read_config(tmp_path / "a.json") == {"models": ["é"]}


def test_the_matrix_in_words() -> None:
    matrix = {"compared": 0, "flips": 0, "instance_types": ["a", "b"], "fragile_problems": [], "varied": 3, "items": 5}
    assert matrix_sentences(matrix) == [
        "No item has the same answer on two instance types: the machines cannot be compared.",
        "3 of 5 items got different answers: the model varies.",
    ]
