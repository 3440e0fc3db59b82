"""POST to the first event of the runner, against plain `docker run` of the same image.

    .venv/bin/python -m tests.bench.start [ROUNDS]

Both are measured alternately in one run; the goal is a ratio of at most 1.3.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from tests.faults.service import Service


def plain_run() -> float:
    """From the command to the first thing its Python program has done."""
    began = time.monotonic()
    command = ["docker", "run", "--rm", "--entrypoint", "python", "benchyard-runner:latest", "-c", "print('up')"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        return time.monotonic() - began


def our_run(service: Service) -> float:
    """From the moment before the request is sent to the receipt of the runner's first event."""
    began = time.time()
    run_id = service.submit(sample_size=1, instance_type="standard-2")
    run = service.wait_status(run_id, "completed")
    first = datetime.fromisoformat(run["attempts"][0]["facts"]["stages"]["boot"])
    return first.timestamp() - began


def main(rounds: int) -> None:
    ours, plain = [], []
    with tempfile.TemporaryDirectory() as directory:
        service = Service(Path(directory) / "data", demo_latency_s=0.01)
        try:
            service.start()
            our_run(service)
            for _ in range(rounds):
                plain.append(plain_run())
                ours.append(our_run(service))
        finally:
            service.close()
    for name, times in (("docker run", plain), ("POST to first event", ours)):
        print(f"{name:20} p50 {statistics.median(times):.3f} s   worst {max(times):.3f} s")
    ratio = statistics.median(ours) / statistics.median(plain)
    print(f"ratio of the medians {ratio:.2f} over {rounds} rounds (goal: at most 1.3)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
