"""Are a command's figures the kernel's, and free of the container's start? `python -m tests.bench.commands`.

The command reads the kernel's own figures of itself and its children just before it ends, and says them as figures; they are
compared with what the runner measured. Beside it, `docker run` of the same command by the clock. Needs a Docker engine.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.faults.service import Service

IMAGE = "benchyard-runner:latest"
REPEATS = 7
CODE = """
import json, os, resource, time
MIB = 1 << 20
hoard = bytearray(150 * MIB)
if os.fork() == 0:
    begin = time.process_time()
    while time.process_time() - begin < 0.5: pass
    os._exit(0)
os.wait()
while time.process_time() < 2.0: pass
own, below = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
ticks = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
said = {
    "kernel_cpu": own.ru_utime + own.ru_stime + below.ru_utime + below.ru_stime,
    "kernel_wall": time.clock_gettime(time.CLOCK_BOOTTIME) - ticks,
    "kernel_peak": own.ru_maxrss * 1024,
}
for name, value in said.items(): print(json.dumps({"name": name, "value": value}), flush=True)
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder) / "data")
        service.start()
        try:
            task = {"image": IMAGE, "command": ["python3", "-c", CODE], "repeats": REPEATS, "warmups": 1}
            body = {"kind": "command", "command": task, "instance_type": "standard-2"}
            run_id = service.client.post("/api/container-runs", json=body).json()["run_id"]
            service.wait_status(run_id, "completed", within_s=600)
            repeats = service.client.get(f"/api/commands/{run_id}").json()["repeats"]
        finally:
            service.close()
    for name, kernel in (("cpu_s", "kernel_cpu"), ("wall_s", "kernel_wall"), ("peak_bytes", "kernel_peak")):
        ratios = [each[name] / next(f["value"] for f in each["figures"] if f["name"] == kernel) for each in repeats]
        spread = f"{min(ratios):.4f} to {max(ratios):.4f}"
        print(f"{name} over what the command read of itself: median {median(ratios):.4f}, {spread}")
    walls = []
    for _ in range(3):
        begin = time.monotonic()
        command = ["docker", "run", "--rm", "--cpus", "1", "--entrypoint", "python3", IMAGE, "-c", CODE]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        walls.append(time.monotonic() - begin)
    measured = median(each["wall_s"] for each in repeats)
    print(f"wall_s {measured:.2f} s (median); docker run of the same {median(walls):.2f} s by the clock")


if __name__ == "__main__":
    sys.exit(main())
