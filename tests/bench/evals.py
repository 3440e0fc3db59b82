"""How fast an eval judges traces: 10,000 through the whole service, in a real container, against one subprocess per trace.

    python -m tests.bench.evals [--traces 10000] [--alone 400] [--engine process]

The comparison runs the same function, interpreter and traces in the same minute, `python -I` once per trace, as many at once
as there are cores, without any protection; its time for all traces is extrapolated from a part.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from orchestrator.traces.sample import sample_traces
from tests.faults.service import Service, wait_for

DRIVER = """
import json, sys
names = {}
exec(sys.argv[1], names)
print(json.dumps(names["evaluate"](json.load(sys.stdin))))
"""


def over(service: Service, job_id: str) -> dict[str, Any]:
    def ended() -> dict[str, Any] | None:
        job: dict[str, Any] = service.client.get(f"/api/jobs/{job_id}").json()
        return job if job["status"] in ("completed", "failed", "cancelled") else None

    found: dict[str, Any] = wait_for(ended, 600, f"job {job_id} is over", every_s=0.05)
    assert found["status"] == "completed", found
    return found


def seconds_of(job: dict[str, Any]) -> float:
    from datetime import datetime

    return (datetime.fromisoformat(job["completed_at"]) - datetime.fromisoformat(job["started_at"])).total_seconds()


def through_the_service(count: int, engine: str) -> tuple[dict[str, Any], str]:
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder) / "data", engine=engine)
        service.start()
        try:
            made = service.client.post("/api/eval-sets", json={"name": "bench"}).json()
            rows = list(sample_traces(count, seed=1))
            for row in rows[60:]:
                row.pop("label")
            body = "".join(json.dumps(row) + "\n" for row in rows)
            began = time.monotonic()
            answer = service.client.post("/api/traces", params={"eval_set_id": made["id"]}, content=body, timeout=300)
            assert answer.json()["imported"] == count, answer.text
            imported_s = time.monotonic() - began
            asked = service.client.post(f"/api/eval-sets/{made['id']}/generate", json={"model_id": "demo-strong"}).json()
            eval_id = over(service, asked["job_id"])["eval_id"]
            began = time.monotonic()
            asked = service.client.post(f"/api/evals/{eval_id}/execute").json()
            job = over(service, asked["job_id"])
            whole_s = time.monotonic() - began
            row = service.client.get(f"/api/evals/{eval_id}").json()
            assert row["execution_count"] == count
            figures = {
                "traces": count,
                "import_s": round(imported_s, 1),
                "from_post_to_completed_s": round(whole_s, 1),
                "container_at_work_s": round(seconds_of(job), 1),
                "traces_per_s": round(count / whole_s),
                "average_ms_in_the_sandbox": job["average_ms"],
            }
            return figures, row["code"]
        finally:
            service.close()


def one_process_each(code: str, count: int, of: int) -> dict[str, Any]:
    rows = list(sample_traces(count, seed=1))

    def judge(row: dict[str, Any]) -> bool:
        command = [sys.executable, "-I", "-c", DRIVER, code]
        done = subprocess.run(command, input=json.dumps(row), capture_output=True, text=True, check=True)
        return bool(json.loads(done.stdout)["passed"])

    began = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(judge, rows))
    took = time.monotonic() - began
    return {"measured": count, "took_s": round(took, 1), "for_all_s": round(took * of / count, 1)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--alone", type=int, default=400)
    parser.add_argument("--engine", choices=("docker", "process"), default="docker")
    options = parser.parse_args()
    ours, code = through_the_service(options.traces, options.engine)
    alone = one_process_each(code, options.alone, options.traces)
    ratio = round(alone["for_all_s"] / ours["from_post_to_completed_s"], 1)
    print(
        json.dumps({"service": ours, "one_subprocess_per_trace": alone, "ratio": ratio, "load": os.getloadavg()}, indent=2)
    )


if __name__ == "__main__":
    main()
