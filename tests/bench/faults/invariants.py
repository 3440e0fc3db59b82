"""I1 to I9 as checks of a scene after a repeat, each by name: over rows, API, pages, command line and engine.

The ones that tests share are in tests/faults/invariants.py. All runs of the repeat have ended when they are made.
"""

from __future__ import annotations

import html
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.gateway.calls import request_hash
from orchestrator.runs.reasons import SENTENCES, Reason
from tests.bench.faults.scene import Scene, Submitted
from tests.faults.invariants import log_replays, nothing_lost
from tests.faults.service import ROOT, TOKEN, wait_for

MOST_RESIDENT_MIB = 500
"""I8: what the orchestrator's process may have in memory, whatever happens."""


def no_lost_result(scene: Scene, run: dict[str, Any], submitted: Submitted) -> None:
    """I1: every item that was acknowledged or shown is in the database, and a completed run has all."""
    found = scene.rows("SELECT count(*) AS n FROM item_results WHERE run_id = :run", run=run["id"])[0]["n"]
    assert found == run["progress"]["done"] >= submitted.seen_items, f"{found} rows, {run['progress']}, {submitted}"
    if run["status"] == "completed" and run["reason"] is None and submitted.all_count:
        nothing_lost(scene.service, run)


def one_container_and_one_result(scene: Scene, run: dict[str, Any], _: Submitted) -> None:
    """I2: never two live containers at once, and every item and attempt once."""
    assert run["id"] not in scene.containers.doubles, "two live containers at once"
    numbers = [each["number"] for each in run["attempts"]]
    assert numbers == list(range(1, run["attempt"] + 1)), numbers
    items = [(item["benchmark"], item["problem_id"], item["sample_index"]) for item in scene.service.items(run["id"])]
    assert len(items) == len(set(items)) == run["progress"]["done"]


def nothing_left(scene: Scene, run: dict[str, Any], _: Submitted) -> None:
    """I3, for one run: 90 s after its end the engine has none of its containers."""
    wait_for(lambda: not scene.service.containers(run["id"], all_states=True), 9, "its containers are gone")


def plain_reasons(scene: Scene, run: dict[str, Any], _: Submitted) -> None:
    """I5: reasons are from the closed list, with one sentence, in API, page and command line."""
    reasons = {each["reason"] for each in run["attempts"]} | {run["reason"]}
    assert reasons <= {None, *(reason.value for reason in Reason)}, reasons
    assert (run["reason"] is None) == (run["reason_sentence"] is None), (run["reason"], run["reason_sentence"])
    assert run["reason"] or run["status"] == "completed", f"{run['status']} without a reason"
    if run["reason"]:
        sentence = SENTENCES[Reason(run["reason"])]
        assert run["reason_sentence"] == sentence
        said = {sentence, run["error_message"] or sentence}
        on_page = {"Cancelled by "} if run["reason"] == Reason.CANCELLED_BY_USER else said
        answer = wait_for(lambda: _page(scene, run["id"]), 9, "the page of the run")
        page = html.unescape(answer)
        assert any(" ".join(each.split())[:200] in " ".join(page.split()) for each in on_page), f"not on the page: {on_page}"
        shown = " ".join(_command_line(scene, "show", run["id"]).split())
        assert any(" ".join(each.split())[:60] in shown for each in said), f"not in the command line: {shown[-300:]}"


def _page(scene: Scene, run_id: str) -> str | None:
    """None while the service is too busy to answer and says so."""
    answer = scene.service.client.get(f"/runs/{run_id}")
    return None if answer.status_code == 503 else answer.text


def _command_line(scene: Scene, *words: str) -> str:
    environment = {**os.environ, "BENCHYARD_URL": scene.service.url, "BENCHYARD_TOKEN": TOKEN, "COLUMNS": "400"}
    command = [sys.executable, "-c", "from orchestrator.cli.main import main; main()", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout + done.stderr


def replayable_log(scene: Scene, run: dict[str, Any], _: Submitted) -> None:
    """I6: the transitions lead to the state by legal edges only."""
    log_replays(scene.service, run)


def once_due_once_fired(scene: Scene) -> None:
    """I7: one row per due instant (the key), at most one run for it, and no scheduled run without one."""
    fires = scene.rows("SELECT model_id, instant, run_id FROM schedule_fires")
    runs = [fire["run_id"] for fire in fires if fire["run_id"]]
    assert len(runs) == len(set(runs)), "a run for two instants"
    instants = [(fire["model_id"], str(fire["instant"])) for fire in fires]
    assert len(instants) == len(set(instants)), "an instant fired twice"
    made = {row["id"] for row in scene.rows("SELECT id FROM container_runs WHERE trigger_type = 'schedule'")}
    assert made == set(runs), f"scheduled runs without a fire, or fires without a run: {made ^ set(runs)}"


def good_answers(scene: Scene) -> None:
    """I8: no 5xx but 503 with Retry-After, neither to a client nor to a runner; memory is bounded."""
    with scene.lock:
        bad, scene.answers.bad[:] = list(scene.answers.bad), []
    assert not bad, bad[:5]
    log = (scene.service.data / "service.log").read_bytes() if (scene.service.data / "service.log").exists() else b""
    assert b'"internal_error"' not in log, "an internal error is in the log"
    if (mib := resident_mib(scene.service.pid)) is not None:
        assert mib <= MOST_RESIDENT_MIB, f"{mib:.0f} MiB resident"


def resident_mib(pid: int) -> float | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), None)


def paid_once(scene: Scene, run: dict[str, Any], submitted: Submitted) -> None:
    """I9: calls at the provider = distinct call keys. What was under way at a killed orchestrator is recorded as a lost
    send, counts as spent, and is written into the table."""
    if not submitted.seed:
        return
    asked = Counter(
        request_hash("openai", "/v1/chat/completions", question, {}) for question in scene.provider.questions(submitted.seed)
    )
    rows = scene.rows("SELECT call_key, request_hash, state FROM gateway_calls WHERE run_id = :run", run=run["id"])
    lost_rows = scene.rows("SELECT call_key FROM gateway_lost_sends WHERE run_id = :run", run=run["id"])
    hash_of = {row["call_key"]: row["request_hash"] for row in rows}
    lost = Counter(hash_of[row["call_key"]] for row in lost_rows)
    opened = Counter(row["request_hash"] for row in rows)
    settled = Counter(row["request_hash"] for row in rows if row["state"] == "settled")
    for question in asked | settled:
        at_least, at_most = settled[question], opened[question] + lost[question]
        assert at_least <= asked[question] <= at_most, f"asked {asked[question]} times, rows {at_least}, {at_most} with lost"
    if run["status"] == "completed":
        assert {row["state"] for row in rows} <= {"settled"}, Counter(row["state"] for row in rows)
    if again := (asked - opened).total():
        with scene.lock:
            scene.lost["calls under way when it was killed, bought again"] = (
                scene.lost.get("calls under way when it was killed, bought again", 0) + again
            )


PER_RUN: dict[str, Callable[[Scene, dict[str, Any], Submitted], None]] = {
    "I1": no_lost_result,
    "I2": one_container_and_one_result,
    "I3": nothing_left,
    "I5": plain_reasons,
    "I6": replayable_log,
    "I9": paid_once,
}
PER_SCENE: dict[str, Callable[[Scene], None]] = {"I7": once_due_once_fired, "I8": good_answers}


def broken(scene: Scene) -> dict[str, str]:
    """Which invariants do not hold after a repeat, and what was seen. I4 is measured by the harness."""
    found: dict[str, str] = {}
    for submitted in scene.runs:
        for name, check in PER_RUN.items():
            _try(found, name, lambda: check(scene, scene.see(submitted.run_id), submitted))  # noqa: B023
    for name, check_scene in PER_SCENE.items():
        _try(found, name, lambda: check_scene(scene))  # noqa: B023
    return found


def _try(found: dict[str, str], name: str, check: Callable[[], None]) -> None:
    try:
        check()
    except AssertionError as error:
        found.setdefault(name, str(error)[:500] or "assertion failed")
    except Exception as error:  # a check that cannot be made has not passed
        found.setdefault(name, f"{type(error).__name__}: {error}"[:500])


def broken_at_the_end(scene: Scene) -> dict[str, str]:
    """What does not hold once nothing runs on the scene any more: I3 for everything with our label, and the database."""
    found: dict[str, str] = {}
    _try(found, "I3", lambda: _only_its_network(scene))
    if scene.database_url is None:
        _try(found, "I1", lambda: _whole_database(scene))
    return found


def _only_its_network(scene: Scene) -> None:
    service = scene.service
    wait_for(lambda: not service.containers(all_states=True), 9, "every container is removed")
    label = f"label=benchyard.instance={service.instance}"
    left = service.docker("volume", "ls", "--quiet", "--filter", label).split()
    assert not left, f"volumes: {left}"
    networks = service.docker("network", "ls", "--filter", label, "--format", "{{.Name}}").split()
    assert networks == [service.network], f"networks: {networks}"


def _whole_database(scene: Scene) -> None:
    (row,) = scene.rows("PRAGMA integrity_check")
    assert row["integrity_check"] == "ok", row
