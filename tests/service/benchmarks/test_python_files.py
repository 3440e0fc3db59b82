"""Benchmarks as Python files in a real service, with runners as local processes and a provider on this machine: the three
worked examples of the documents, trials, replay, regrading, and files that fail."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.service import TOKEN, Service, wait_for
from tests.service.benchmarks.talking_provider import Messages, TalkingProvider, talking_provider

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "docs" / "examples" / "benchmarks"
DONE = ("completed", "failed", "cancelled")


class World:
    """A service with the model `pupil`."""

    def __init__(self, service: Service, provider: TalkingProvider) -> None:
        self.service, self.provider, self.client = service, provider, service.client

    def add(self, source: str, filename: str = "own.py") -> str:
        answer = self.client.post("/api/benchmarks", json={"python": source, "filename": filename})
        assert answer.status_code == 202, answer.text
        name = str(answer.json()["name"])
        path = f"/api/datasets/{name}"
        job = wait_for(lambda: job if (job := self.client.get(path).json())["state"] != "running" else None, 60, path)
        assert job["state"] == "done", job
        return name

    def ended(self, run_id: str) -> dict[str, Any]:
        path = f"/api/container-runs/{run_id}"
        run: dict[str, Any] = wait_for(
            lambda: run if (run := self.client.get(path).json())["status"] in DONE else None, 120, f"run {run_id} ends"
        )
        return run

    def run(self, name: str, **fields: Any) -> dict[str, Any]:
        body = {"model_id": "pupil", "benchmarks": [name], "sample_size": 3, **fields}
        answer = self.client.post("/api/container-runs", json=body)
        assert answer.status_code == 202, answer.text
        return self.ended(answer.json()["run_id"])

    def items(self, run: dict[str, Any]) -> dict[str, dict[str, Any]]:
        listed = self.client.get(f"/api/container-runs/{run['id']}/items").json()["items"]
        return {item["problem_id"]: item for item in listed}


@pytest.fixture(scope="module")
def provider() -> Iterator[TalkingProvider]:
    with talking_provider() as provider:
        yield provider


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, provider: TalkingProvider) -> Iterator[Service]:
    settings = {"base_url": provider.url, "api_key": "k", "allow_private": "1"}
    own = {f"provider_school_{name}": value for name, value in settings.items()}
    service = Service(tmp_path_factory.mktemp("python") / "data", engine="process", **own)
    service.start()
    try:
        body = {"slug": "pupil", "provider": "school", "name": "pupil", "protocol": "openai_chat"}
        prices = {"input_price": 1, "output_price": 1, "params": {"max_tokens": 100}}
        assert service.client.post("/api/models", json={**body, **prices}).status_code == 201
        yield service
    finally:
        service.client.close()
        service.kill()


@pytest.fixture
def world(served: Service, provider: TalkingProvider) -> World:
    provider.asked.clear()
    return World(served, provider)


def example(name: str) -> str:
    return (EXAMPLES / name).read_text()


def test_a_metric_of_its_own_gives_a_mean_with_an_interval(world: World) -> None:
    replies = {"Eiffel": "Gustave Eiffel", "Moon": "Neil Armstrong", "penicillin": "Louis Pasteur"}
    world.provider.reply = lambda messages: next(text for word, text in replies.items() if word in messages[-1]["content"])
    name = world.add(example("word_overlap.py"), "word_overlap.py")
    run = world.run(name)
    items = world.items(run)
    assert {key: (item["outcome"], round(item["score"], 3)) for key, item in items.items()} == {
        "tower": ("wrong_answer", 0.571),
        "moon": ("passed", 1.0),
        "penicillin": ("wrong_answer", 0.0),
    }
    score = run["score"]
    assert (score["metric"], round(score["estimate"], 3), score["passed"]) == ("mean", 0.524, 1)
    assert 0 < score["low"] < score["estimate"] < score["high"] < 1
    assert items["tower"]["detail"] == "2 of 5 words of the reference, 2 words in all"
    # The pages show the mean, and the file
    page = world.client.get(f"/runs/{run['id']}").text
    assert "0.524" in page
    assert "0.571" in page
    assert "def score" in world.client.get(f"/benchmarks/{name}").text
    other = world.run(name)
    compared = world.client.get(f"/compare?run={run['id']}&run={other['id']}").text
    assert "3 shared problems: " in compared
    assert "the same values on each" in compared
    board = world.client.get(f"/api/leaderboard?benchmark={name}").json()
    assert [(place["metric"], round(place["estimate"], 3)) for place in board["places"]] == [("mean", 0.524)]
    line = world.client.get(f"/api/container-runs/{run['id']}/export?format=csv").text.splitlines()
    assert "score" in line[0].split(",")
    # Regrading the stored answers gives the same values
    regraded = world.ended(world.client.post(f"/api/container-runs/{run['id']}/regrade").json()["run_id"])
    assert {key: item["score"] for key, item in world.items(regraded).items()} == {
        key: item["score"] for key, item in items.items()
    }
    assert world.client.get(f"/api/container-runs/{regraded['id']}/moves").json()["items"] == []


def halving(messages: Messages) -> str:
    """A pupil who plays well."""
    low, high, guess = 1, 100, 50
    for message in messages:
        if message["role"] == "assistant":
            guess = int(message["content"])
        elif message["content"] == "Higher.":
            low = guess + 1
        elif message["content"] == "Lower.":
            high = guess - 1
    return str((low + high) // 2)


def test_several_turns_are_several_calls_and_are_regraded_as_one_answer(world: World) -> None:
    world.provider.reply = halving
    name = world.add(example("guess_the_number.py"), "guess_the_number.py")
    run = world.run(name)
    items = world.items(run)
    assert {key: (item["outcome"], item["score"]) for key, item in items.items()} == {
        "7": ("passed", 1 - 5 / 8),
        "42": ("passed", 1 - 6 / 8),
        "93": ("passed", 1 - 6 / 8),
    }
    calls = world.client.get(f"/api/container-runs/{run['id']}/calls").json()["items"]
    keys = sorted(call["call_key"] for call in calls if "/42/" in call["call_key"])
    assert keys == [f"{name}/42/0/{turn}" for turn in range(7)]
    assert run["cost_usd"] == pytest.approx(15 * len(calls) / 1e6)
    assert len(world.provider.asked) == len(calls)
    assert world.provider.asked[0][0] == {"role": "system", "content": "You play a game. Answer with a number only."}
    one = world.client.get(f"/api/container-runs/{run['id']}/items/{items['42']['position']}").json()
    assert "[assistant]\n50" in one["prompt"]
    assert len(one["calls"]) == 7
    regraded = world.ended(world.client.post(f"/api/container-runs/{run['id']}/regrade").json()["run_id"])
    assert {key: item["score"] for key, item in world.items(regraded).items()} == {
        key: item["score"] for key, item in items.items()
    }
    assert len(world.provider.asked) == len(calls), "regrading asks nobody"


def runner_pids(data: Path) -> list[int]:
    """The runners of the service with this data directory: children of the processes that keep them."""
    parents: dict[int, int] = {}
    words: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            words[int(path.name)] = (path / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
    keepers = {pid for pid, own in words.items() if any(word.startswith(str(data)) for word in own)}
    return [pid for pid, own in words.items() if "runner" in own and parents.get(pid) in keepers]


def test_a_runner_killed_in_the_middle_of_a_conversation_pays_for_no_answer_twice(world: World) -> None:
    name = world.add(example("guess_the_number.py"), "guess_the_number.py")
    killed: list[int] = []

    def reply(messages: Messages) -> str:
        if len(world.provider.asked) == 4 and not killed:
            killed.extend(runner_pids(world.service.data))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
        return halving(messages)

    world.provider.reply = reply
    run = world.run(name, sample_size=1, seed=3)
    assert killed
    assert (run["status"], run["attempt"]) == ("completed", 2)
    (item,) = world.items(run).values()
    assert item["outcome"] == "passed"
    calls = world.client.get(f"/api/container-runs/{run['id']}/calls").json()["items"]
    assert len(calls) == len(world.provider.asked) == len({len(messages) for messages in world.provider.asked})


def test_a_pupil_who_never_finds_it_is_asked_eight_times_and_gets_nothing(world: World) -> None:
    world.provider.reply = lambda messages: "1"
    run = world.run(world.add(example("guess_the_number.py"), "guess_the_number.py"), sample_size=1)
    assert [(item["outcome"], item["score"]) for item in world.items(run).values()] == [("wrong_answer", 0.0)]
    assert len(world.provider.asked) == 8
    quote = world.client.post(
        "/api/quotes", json={"model_id": "pupil", "benchmarks": [run["benchmarks"][0]], "sample_size": 1}
    )
    assert (quote.json()["items"], quote.json()["turns"]) == (1, 8)
    assert quote.json()["worst_case_usd"] > run["cost_usd"] > 0


def test_a_rubric_that_a_program_checks(world: World) -> None:
    world.provider.reply = lambda messages: (
        "Hello, I am sorry about order A-17." if "A-17" in messages[-1]["content"] else "I promise a new cup."
    )
    run = world.run(world.add(example("polite_reply.py"), "polite_reply.py"), sample_size=2)
    items = world.items(run)
    assert (items["late"]["outcome"], items["late"]["score"], items["late"]["detail"]) == ("passed", 1.0, "every point")
    assert items["broken"]["score"] == pytest.approx(0.2)
    assert items["broken"]["detail"] == "missed: greets, names the order, apologises, promises nothing"


OWN = """
from benchyard_task import Score

NAME = "own"
RECORDS = [{"id": "a", "text": "good"}, {"id": "b", "text": "bad"}]
FIELDS = {"id": "id"}


def prompt(record):
    return record["text"]


def score(record, answer):
    if record["id"] == "b":
        raise ZeroDivisionError("no " + record["text"])
    return True
"""


def test_a_scorer_that_raises_is_not_the_models_fault_and_never_a_pass(world: World) -> None:
    world.provider.reply = lambda messages: "x"
    run = world.run(world.add(OWN), sample_size=2)
    items = world.items(run)
    assert (items["a"]["outcome"], items["a"]["score"]) == ("passed", 1.0)
    assert items["b"]["outcome"] == "infra_error"
    assert items["b"]["detail"] == "the benchmark's own program failed: score raised ZeroDivisionError: no bad"
    assert (run["score"]["n"], run["score"]["excluded"]) == (1, 1)


def test_a_prompt_that_always_fails_fails_the_run_with_its_reason(world: World) -> None:
    world.provider.reply = lambda messages: "x"
    run = world.run(world.add(OWN.replace('record["text"]\n', 'record["txet"]\n', 1)), sample_size=2)
    assert (run["status"], run["reason"]) == ("failed", "dataset_error")
    assert "prompt raised KeyError: 'txet'" in run["error_message"]
    assert world.provider.asked == []


def test_check_and_trial_over_rest_and_page(world: World) -> None:
    body = {"python": OWN, "filename": "own.py"}
    checked = world.client.post("/api/benchmarks/check", json=body).json()
    assert [(problem["id"], problem["prompt"]) for problem in checked["problems"]] == [("a", "good"), ("b", "bad")]
    answers = [{"problem_id": "a", "text": "x"}, {"problem_id": "b", "text": "y"}]
    tried = world.client.post("/api/benchmarks/try", json={**body, "answers": answers}).json()["items"]
    assert [(row["value"], row["passed"], row["error"]) for row in tried] == [
        (1.0, True, None),
        (None, None, "score raised ZeroDivisionError: no bad"),
    ]
    unknown = world.client.post("/api/benchmarks/try", json={**body, "answers": [{"problem_id": "z", "text": ""}]})
    assert unknown.status_code == 422
    assert "no problem 'z'" in unknown.json()["detail"]
    form = {"form": "python", "text": OWN, "records": "", "action": "check"}
    page = world.client.post("/benchmarks/new", data=form, headers={"origin": world.service.url})
    assert page.status_code == 200, page.text
    assert "good" in page.text


def cli(world: World, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).parent / "benchyard"), *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "BENCHYARD_URL": world.service.url, "BENCHYARD_TOKEN": TOKEN},
        check=False,
    )


def test_tried_and_added_on_the_command_line(world: World, tmp_path: Path) -> None:
    world.provider.reply = lambda messages: "Neil Armstrong"
    answers = tmp_path / "answers.jsonl"
    answers.write_text(json.dumps({"id": "moon", "text": "Armstrong"}) + "\n")
    file = str(EXAMPLES / "word_overlap.py")
    tried = cli(world, "benchmarks", "try", file, "--answers", str(answers))
    assert tried.returncode == 0, tried.stderr
    assert "0.667" in tried.stdout
    assert "1 of 2 words" in tried.stdout
    asked = cli(world, "benchmarks", "try", file, "--model", "pupil", "--sample-size", "2", "--json")
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout)["run"]["benchmarks"] == ["word-overlap-trial"]
    added = cli(world, "benchmarks", "add", file)
    assert added.returncode == 0, added.stderr
    assert "Added word-overlap: 3 problems" in added.stdout
