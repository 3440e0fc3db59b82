"""The whole program, as a real process against a real server."""

from __future__ import annotations

import subprocess

from fake_orchestrator import RIGHT, RUN_TOKEN, FakeOrchestrator, StartRunner, problem


def finish(process: subprocess.Popen[str], timeout: float = 25) -> tuple[int, str]:
    _, err = process.communicate(timeout=timeout)
    return process.returncode, err


def test_a_run_goes_through(orchestrator: FakeOrchestrator, start_runner: StartRunner) -> None:
    orchestrator.problems = [problem("p1"), problem("p2"), problem("p3")]
    wrong = "```python\nprint(input())\n```"
    orchestrator.answer = lambda key, body: {"sample/p2/0/0": wrong, "sample/p3/0/0": "I do not know."}.get(key, RIGHT)

    code, err = finish(start_runner(orchestrator.boot_line))

    assert code == 0, err
    assert {key: item["outcome"] for key, item in orchestrator.items.items()} == {
        "p1": "passed",
        "p2": "wrong_answer",
        "p3": "no_answer",
    }
    stages = [event["stage"] for event in orchestrator.of("stage")]
    assert stages == ["boot", "provision", "running", "uploading", "finished"]
    assert list(orchestrator.events) == list(range(1, len(orchestrator.events) + 1))
    assert max(orchestrator.events.items())[1] == {"type": "complete", "seq": len(orchestrator.events), "items": 3}
    assert orchestrator.items["p1"]["tests_passed"] == 2
    assert orchestrator.calls[0][2]["authorization"] == f"Bearer {RUN_TOKEN}"
    assert RUN_TOKEN not in err
