"""The commands against a whole service, with runs that really go through it on the fake engine."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from orchestrator.engines.fake.container import FakeContainer
from tests.served import TOKEN, RunnerClient, Service
from tests.unit.cli.command_line import Benchyard


async def until_cancelled(container: FakeContainer) -> int:
    """Finishes one item, says something nasty, then works until it is told to stop."""
    runner = RunnerClient(container.boot_line, container.container_id[-12:])
    try:
        await runner.claim()
        item = {**runner.open_items()[0], "outcome": "passed"}
        await runner.send(
            runner.next("log", message="\x1b[2Jhello\nthere", level="warning"), runner.next("progress", item=item)
        )
        while (await runner.send(runner.next("heartbeat"))).json().get("desired") == "run":
            await asyncio.sleep(0.05)
        return 0
    finally:
        await runner.close()


async def refused_by_provider(container: FakeContainer) -> int:
    runner = RunnerClient(container.boot_line, container.container_id[-12:])
    try:
        await runner.claim()
        await runner.send(runner.next("failed", reason="provider_error", message="401: bad \x1b]0;key\x07"))
        return 1
    finally:
        await runner.close()


def test_a_run_from_submission_to_score(service: Service, benchyard: Benchyard) -> None:
    ended = benchyard(
        "run", "--model", "demo-strong", "-m", "demo-weak", "--sample-size", "4", "--samples", "2", "--seed", "7"
    )
    assert ended.code == 0
    assert "demo-strong" in ended.out
    assert "50.0 %" in ended.out
    assert "95 % interval" in ended.out
    assert "4 passed, 4 wrong_answer" in ended.out
    changes = [line.split()[-1] for line in ended.err.splitlines() if line.startswith("demo-weak")]
    assert changes == ["starting", "running", "completed"]  # one line per change, none per item


def test_run_as_json_is_one_value_and_nothing_else(service: Service, benchyard: Benchyard) -> None:
    ended = benchyard("run", "-m", "demo-weak", "-n", "2", "--benchmark", "sample", "--concurrency", "2", "--json")
    (run,) = ended.json["runs"]
    assert (ended.code, ended.err) == (0, "")
    assert (run["status"], run["score"]["n"], run["outcomes"]) == ("completed", 2, {"passed": 1, "wrong_answer": 1})


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("run", "-m", "nope", "-n", "3"), 1, "There is no model 'nope'"),
        (("run", "-m", "demo-weak", "-n", "99"), 1, "36"),
        (("run", "-m", "demo-weak", "-n", "0"), 1, "sample_size"),
        (("run", "-m", "demo-weak", "-n", "few"), 2, "--sample-size 'few'"),
        (("run", "-m", "demo-weak", "-n", "3", "--deadline", "soon"), 2, "--deadline 'soon'"),
        (("run", "-m", "demo-weak", "-n", "3", "--instance-type", "huge"), 1, "no instance type 'huge'"),
        (("run", "-m", "demo-weak"), 2, "--sample-size"),
        (("run", "-m", "demo-weak", "-n", "3", "--budget", "much"), 2, "--budget"),
        (("show", "ffffffff"), 1, "There is no run ffffffff"),
        (("show", "not-an-id"), 1, "is not the beginning"),
        (("show", "0"), 1, "Several runs begin with 0"),
        (("cancel", "ffffffff-ffff-7fff-8fff-ffffffffffff"), 1, "There is no run"),
        (("runs", "--status", "odd"), 2, "pending, starting"),
        (("runs", "--model", "nope"), 1, "There is no model 'nope'"),
        (("models", "add", "BAD SLUG", "--provider", "openai"), 1, "slug"),
        (("models", "remove", "nope"), 1, "There is no model 'nope'"),
        (("nuke",), 2, "--yes"),
        (("up",), 2, "BENCHYARD_URL"),
        (("unknown",), 2, "unknown"),
    ],
)
def test_mistakes_are_answered_with_a_sentence(
    words: tuple[str, ...], code: int, sentence: str, service: Service, benchyard: Benchyard
) -> None:
    for _ in range(2 if words == ("show", "0") else 0):
        benchyard("run", "-m", "demo-weak", "-n", "1", "-d")
    ended = benchyard(*words)
    assert (ended.code, ended.out) == (code, "")
    assert sentence in ended.err
    assert "Traceback" not in ended.err


def test_a_run_for_the_machines_of_a_provider_waits_for_them(service: Service, benchyard: Benchyard) -> None:
    made = benchyard("run", "-m", "demo-strong", "-n", "1", "--provider", "lab", "--detach", "--json")
    run_id = made.json["runs"][0]["id"]
    shown = benchyard("show", run_id, "--json").json
    assert (shown["provider"], shown["status"]) == ("lab", "pending")
    assert "no machine of provider lab" in benchyard("fleet").out
    assert benchyard("cancel", run_id).code == 0


def test_cancel_show_logs_and_retry(service: Service, benchyard: Benchyard) -> None:
    service.engine.behaviour = until_cancelled
    run_id = benchyard("run", "-m", "demo-strong", "-n", "3", "--detach").out.strip()
    while benchyard("show", run_id, "--json").json["progress"]["done"] == 0:
        pass
    assert "is being cancelled" in benchyard("cancel", run_id).out
    followed = benchyard("logs", "--follow", run_id)
    assert followed.code == 0
    assert "\\x1b[2Jhello" in followed.out
    assert "\x1b" not in followed.out
    assert "--- running: is being cancelled" in followed.err
    assert "--- cancelled" in followed.err
    assert benchyard("cancel", run_id).out == f"Run {run_id} is cancelled.\n"

    shown = benchyard("show", run_id).out
    for fact in (
        "cancelled",
        "The run was cancelled by a user.",
        "1 of 3 items",
        "cancelled_by_user",
        f"benchyard-run-{run_id}-a1",
    ):
        assert fact in shown
    lines = benchyard("logs", run_id, "--json").json["lines"]
    assert [(line["level"], line["message"]) for line in lines] == [("warning", "\x1b[2Jhello\nthere")]
    assert all("id" in json.loads(line) for line in benchyard("logs", "-f", run_id, "--json").out.splitlines()[:-1])

    service.engine.behaviour = refused_by_provider
    failed = benchyard("retry", run_id)
    assert failed.code == 3
    assert "bad \\x1b]0;key\\x07" in failed.out
    assert "failed" in failed.err
    new_id = failed.err.strip().splitlines()[-1].split()[2]
    assert benchyard("show", new_id, "--json").json["retry_of"] == run_id


def test_a_run_cancelled_by_somebody_else_ends_with_its_own_code(service: Service, benchyard: Benchyard) -> None:
    async def somebody_cancels(container: FakeContainer) -> int:
        run_id = container.labels["benchyard.run"]
        async with httpx.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}) as somebody:
            await somebody.post(f"{service.url}/api/container-runs/{run_id}/cancel")
        return await until_cancelled(container)

    service.engine.behaviour = somebody_cancels
    ended = benchyard("run", "-m", "demo-strong", "-n", "2")
    assert ended.code == 4
    assert "The run was cancelled by a user." in ended.out
    assert "was cancelled" in ended.err


def test_lists(service: Service, benchyard: Benchyard) -> None:
    benchyard("run", "-m", "demo-weak", "-n", "2")
    newest = benchyard("runs", "--limit", "1", "--model", "demo-weak", "--json").json["items"]
    assert len(newest) == 1
    table = benchyard("runs", "--status", "completed").out
    assert "50.0 %" in table
    assert newest[0]["id"][:8] in table
    assert benchyard("runs", "--status", "starting").out.startswith("No runs.")

    assert "demo-strong" in benchyard("models").out
    assert {each["slug"] for each in benchyard("models", "--json").json["items"]} >= {"demo-strong", "demo-weak"}
    assert "36" in benchyard("benchmarks").out
    assert benchyard("benchmarks", "--json").json["items"][0]["name"] == "sample"
    fleet = benchyard("fleet").out
    assert "standard-2" in fleet
    assert "Nothing runs: containers exist in memory only" in fleet
    assert "At most" in fleet
    assert benchyard("fleet", "--json").json["engine"]["name"] == "fake"
    costs = benchyard("costs", "--days", "1")
    assert (costs.code, "runners that stood ready" in costs.out) == (0, True), costs.err
    assert benchyard("costs", "--by", "run", "--json").json["machines"]["idle"] == []


def test_models_come_and_go(service: Service, benchyard: Benchyard) -> None:
    words = ("models", "add", "lab/tiny", "--provider", "openai", "--name", "tiny-1", "--input-price", "0.5")
    added = benchyard(*words, "--output-price", "1.5", "--title", "\x1b[31mTiny", "--max-tokens", "100", "--json").json
    assert (added["slug"], added["name"], added["params"]) == ("lab/tiny", "tiny-1", {"max_tokens": 100})
    listed = benchyard("models", "list").out
    assert "0.5 / 1.5" in listed
    assert "\\x1b[31mTiny" in listed
    assert "already" in benchyard(*words).err
    assert benchyard("models", "remove", "lab/tiny").code == 0
    assert "lab/tiny" not in benchyard("models").out


def test_a_model_gets_its_prices_and_settings_later(service: Service, benchyard: Benchyard) -> None:
    benchyard("models", "add", "lab/late", "--provider", "lab", "--temperature", "0.5", "--max-tokens", "100")
    words = ("models", "set", "lab/late", "--input-price", "3", "--output-price", "15", "--cache-write-price", "3.75")
    changed = benchyard(*words, "--effort", "high", "--clear", "temperature", "--json").json
    assert (changed["input_price"], changed["output_price"], changed["cache_write_price"]) == (3.0, 15.0, 3.75)
    assert changed["params"] == {"max_tokens": 100, "effort": "high"}
    assert "3 / 15, entered 20" in benchyard("models").out
    assert benchyard("models", "set", "lab/late", "--clear", "cached-price", "--json").json["cached_input_price"] is None
    assert benchyard("models", "set", "lab/late").code == 2
    assert benchyard("models", "set", "lab/late", "--clear", "slug").code == 2


def test_a_model_has_options_of_its_server(service: Service, benchyard: Benchyard) -> None:
    words = (
        "models",
        "add",
        "lab/odd",
        "--provider",
        "lab",
        "--seed",
        "7",
        "--top-k",
        "40",
        "--stop",
        "END",
        "--stop",
        "###",
    )
    extra = '{"chat_template_kwargs": {"enable_thinking": false}}'
    added = benchyard(*words, "--extra-body", extra, "--system-prompt", "Be brief.", "--json").json
    options = {"seed": 7, "top_k": 40, "stop": ["END", "###"], "system_prompt": "Be brief."}
    assert added["params"] == {**options, "extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}
    kept = benchyard("models", "set", "lab/odd", "--clear", "stop", "--seed", "8", "--json").json["params"]
    assert (kept["seed"], "stop" in kept, kept["top_k"]) == (8, False, 40)
    assert benchyard("models", "set", "lab/odd", "--extra-body", "[1]").code == 2
    refused = benchyard("models", "set", "lab/odd", "--extra-body", '{"model": "another"}')
    assert (refused.code, "model is set by Benchyard" in refused.err) == (1, True), refused.err


def test_the_demo_runs_both_models(service: Service, benchyard: Benchyard) -> None:
    benchyard("models", "remove", "demo-weak")
    ended = benchyard("demo")
    assert ended.code == 0
    assert "standard-2" in ended.err
    rows = [line for line in ended.out.splitlines() if line.startswith("demo-")]
    assert [row.split()[:2] for row in rows] == [["demo-strong", "completed"], ["demo-weak", "completed"]]
    assert f"{service.url}/login?token=" in ended.out


def test_the_doctor_examines_everything(service: Service, benchyard: Benchyard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHYARD_ENGINE", "process")
    checks: dict[str, Any] = {each["name"]: each for each in benchyard("doctor", "--json").json["checks"]}
    sandboxes = {"sandbox as a process", "sandbox of the last run"}
    assert set(checks) == {"engine", "disk", "disk of commands", "pages", "service", "isolation"} | sandboxes
    assert checks["sandbox as a process"]["sentence"].startswith("Sandbox level ")
    assert checks["service"]["verdict"] == "ok"
    assert checks["isolation"]["verdict"] == "warn"
    monkeypatch.setenv("BENCHYARD_ENGINE", "docker")
    monkeypatch.setenv("BENCHYARD_DOCKER_HOST", "unix:///nowhere/docker.sock")
    ended = benchyard("doctor")
    assert ended.code == 1
    assert "No Docker engine answers at unix:///nowhere/docker.sock" in ended.out


def test_without_a_service_every_command_says_how_to_start_it(benchyard: Benchyard) -> None:
    for words in (("runs",), ("show", "01"), ("models",), ("benchmarks",), ("fleet",), ("run", "-m", "x", "-n", "1")):
        ended = benchyard(*words)
        assert (ended.code, ended.out) == (5, "")
        assert "benchyard up" in ended.err


def test_a_wrong_token_is_explained(service: Service, benchyard: Benchyard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHYARD_TOKEN", "wrong")
    ended = benchyard("runs")
    assert ended.code == 1
    assert "BENCHYARD_TOKEN" in ended.err


def test_tokens_are_made_listed_and_revoked(service: Service, benchyard: Benchyard) -> None:
    made = benchyard("tokens", "create", "ci", "--scope", "run", "--days", "30", "--json").json
    assert made["token"].startswith("by_")
    bare = benchyard("tokens", "create", "laptop")
    assert bare.out.startswith("by_")
    assert "shown only now" in bare.err
    listed = benchyard("tokens").out
    assert "ci" in listed
    assert made["token"] not in listed
    assert benchyard("tokens", "revoke", "ci").out == "Revoked ci.\n"
    gone = benchyard("tokens", "revoke", "ci")
    assert gone.code == 1
    assert "There is no token 'ci'" in gone.err
    (left,) = benchyard("tokens", "list", "--json").json["items"]
    assert benchyard("tokens", "revoke", str(left["id"])).code == 0


def test_webhooks_are_added_changed_and_removed(service: Service, benchyard: Benchyard) -> None:
    address = "https://no-such-name.invalid/hook"
    made = benchyard("webhooks", "add", address, "--json").json
    assert (made["every_failed_run"], made["secret"][:6]) == (False, "whsec_")
    hook = str(made["id"])
    listed = benchyard("webhooks").out
    assert "scheduled runs" in listed
    assert made["secret"] not in listed
    assert benchyard("webhooks", "change", hook, "--every-failure").out == f"Webhook {hook} reports every run that fails.\n"
    assert benchyard("webhooks", "list", "--json").json["items"][0]["every_failed_run"] is True
    unclear = benchyard("webhooks", "change", hook)
    assert (unclear.code, "--every-failure or --scheduled-failures" in unclear.err) == (1, True)
    tried = benchyard("webhooks", "test", hook)
    assert (tried.code, "was not accepted" in tried.err) == (1, True)
    assert benchyard("webhooks", "remove", hook).out == f"Removed webhook {hook}.\n"
    assert benchyard("webhooks", "change", hook, "--every-failure").code == 1
    chat = benchyard("webhooks", "add", address, "--format", "slack")
    assert (chat.code, "whsec_" in chat.out, "benchyard webhooks test" in chat.out) == (0, False, True)
    assert "slack" in benchyard("webhooks").out
    assert benchyard("webhooks", "add", address, "--format", "pigeon").code == 1


def test_runs_are_labelled_and_found_by_their_tags(service: Service, benchyard: Benchyard) -> None:
    started = benchyard(
        "run", "-m", "demo-weak", "-n", "1", "--name", "First", "--tag", "a", "--tag", "b", "--detach", "--json"
    )
    run_id = started.json["runs"][0]["id"]
    labelled = benchyard("runs", "label", run_id, "--tag", "c", "--untag", "a", "--note", "looks odd")
    assert (labelled.code, labelled.out.strip()) == (0, f"Run {run_id}: First #b #c")
    assert [run["id"] for run in benchyard("runs", "--tag", "c", "--json").json["items"]] == [run_id]
    assert benchyard("runs", "--tag", "a", "--json").json["items"] == []
    shown = benchyard("show", run_id).out
    assert "First #b #c" in shown
    assert "looks odd" in shown
    assert benchyard("runs", "label", run_id).code == 2
