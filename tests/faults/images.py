"""Images whose runner misbehaves, built on the real runner image: what a broken or hostile container may do."""

from __future__ import annotations

import base64
import os
import subprocess

RUNNER = os.environ.get("BENCHYARD_RUNNER_IMAGE", "benchyard-runner:latest")

NEVER_CLAIMS = "import time\ntime.sleep(3600)\n"

EXITS_QUIETLY = "import sys\nsys.stdin.readline()\nprint('nothing to do')\n"

CRASHES = "import sys\nsys.stdin.readline()\nprint('cannot go on', file=sys.stderr)\nsys.exit(7)\n"

EATS_MEMORY = "import sys\nsys.stdin.readline()\nhoard = []\nwhile True:\n    hoard.append(bytearray(16 << 20))\n"

CLAIM = """
import json, sys, time, urllib.request

boot = json.loads(sys.stdin.readline())

def post(path, body):
    headers = {"Authorization": "Bearer " + boot["token"], "Content-Type": "application/json"}
    request = urllib.request.Request(boot["orchestrator_url"] + path, json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request, timeout=600))

claim = {"runner_id": "x", "contract_version": 1, "instance_type": boot["instance_type"], "engine": boot["engine"]}
spec = post("/runner/claim", claim)["spec"]
path = f"/runner/runs/{spec['run_id']}/events"

def send(seq, **event):
    return post(path, {"attempt": spec["attempt"], "events": [{"seq": seq, **event}]})
"""

HANGS_WITH_HEARTBEATS = (
    CLAIM
    + """
for seq in range(1, 100000):
    send(seq, type="heartbeat")
    time.sleep(1)
"""
)

CLAIMS_AND_LEAVES = (
    CLAIM
    + """
send(1, type="stage", stage="running")
"""
)

COMPLETES_WITHOUT_ITEMS = (
    CLAIM
    + """
send(1, type="complete", items=0)
"""
)


def by_instance_type(programs: dict[str, str]) -> str:
    """One program for many faults: the instance type of a run says which."""
    return f"""
import io, json, sys

line = sys.stdin.readline()
sys.stdin = io.StringIO(line)
exec({programs!r}[json.loads(line)["instance_type"]], {{"__name__": "__main__"}})
"""


def build(name: str, program: str) -> str:
    """Build (quickly: one small layer) and return the image's name."""
    image = f"benchyard-test-{name}"
    script = base64.b64encode(program.encode()).decode()
    dockerfile = f"""FROM {RUNNER}
RUN echo {script} | base64 -d > /hostile.py
ENTRYPOINT ["/opt/venv/bin/python", "/hostile.py"]
"""
    subprocess.run(
        ["docker", "build", "--quiet", "--tag", image, "-"], input=dockerfile.encode(), check=True, capture_output=True
    )
    return image
