"""The program that pods run in these tests: a runner that judges nothing and says that every answer is wrong.

Standard library only, run with `python -c`. With the argument `hold` it stops in the middle of the first attempt and only
sends heartbeats, until SIGUSR1.
"""

import contextlib
import json
import signal
import sys
import time
import urllib.error
import urllib.request

BOOT = json.loads(sys.stdin.readline())
HELD = set(sys.argv[1:]) & {"hold"}


def post(path, body):
    headers = {"authorization": f"Bearer {BOOT['token']}", "content-type": "application/json"}
    request = urllib.request.Request(BOOT["orchestrator_url"] + path, json.dumps(body).encode(), headers)
    while True:
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                return json.load(answer)
        except urllib.error.HTTPError:
            raise
        except (urllib.error.URLError, ConnectionError):  # a runner outlives a service that is away
            time.sleep(0.1)


def main():
    signal.signal(signal.SIGUSR1, lambda number, frame: HELD.clear())
    claim = {"runner_id": "pod", "contract_version": 1, "instance_type": BOOT["instance_type"], "engine": BOOT["engine"]}
    spec = post("/runner/claim", claim)["spec"]
    print("claimed attempt", spec["attempt"], flush=True)
    sent = 0

    def send(kind, **fields):
        nonlocal sent
        sent += 1
        events = [{"type": kind, "seq": sent, **fields}]
        return post(f"/runner/runs/{spec['run_id']}/events", {"attempt": spec["attempt"], "events": events})

    send("stage", stage="running")
    items = [
        {"benchmark": part["name"], "problem_id": problem_id, "sample_index": 0}
        for part in spec["benchmarks"]
        for problem_id in part["problem_ids"]
    ]
    unfinished = [item for item in items if item not in spec["finished"]]
    for item in unfinished:
        while HELD and spec["attempt"] == 1 and item is not unfinished[0]:
            if send("heartbeat")["desired"] == "cancel":
                sys.exit(0)
            time.sleep(0.1)
        send("progress", item={**item, "outcome": "wrong_answer"})
    send("complete", items=len(items))
    print("completed", flush=True)


with contextlib.suppress(urllib.error.HTTPError, KeyboardInterrupt):
    main()
    sys.exit(0)
sys.exit(3)
