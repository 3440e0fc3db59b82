"""The orchestrator's image has every module of the runner that checks and trials of a Python file need."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = "def score(record, answer):\n    return len(answer) / record['most']\n"


def test_a_trial_needs_only_what_the_image_copies(tmp_path: Path) -> None:
    for line in (ROOT / "orchestrator.Dockerfile").read_text().splitlines():
        words = line.split()
        if words[:1] == ["COPY"] and words[1].startswith("runner"):
            target = tmp_path / words[-1].removeprefix("/app/")
            for name in words[1:-1]:
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    target.mkdir(parents=True, exist_ok=True)
                    shutil.copy(ROOT / name, target)
    request = {"file": {"source": SOURCE}, "cpu_s": 5, "answers": [[{"most": 4}, "ab"]]}
    tried = subprocess.run(
        [sys.executable, "-P", "-m", "runner.items.task_trial"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        cwd="/",
        env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert tried.returncode == 0, tried.stderr
    assert json.loads(tried.stdout)["scores"][0]["value"] == 0.5
