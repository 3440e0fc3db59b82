"""Hours of everything at once, with faults, and whether anything grows that should not.

    .venv/bin/python -m tests.bench.soak [--hours 4] [--seed 1] [--out build/soak] [--containers 2] [--database postgresql]

A real service and engine with schedules, runs, batches, evals, cancels, reads and downloads, and meanwhile containers that
are killed or paused and an orchestrator that is killed or stopped. Every few seconds it notes memory (RSS, PSS), file
descriptors, threads, disk, and the latency of the API and of events: `soak.csv` and `soak.svg`. At the end everything comes
to rest, the invariants of `tests.faults.invariants` are checked for every run, and each series is said to grow or not.
Ends with an error if an invariant is broken or an answer was an error of the server.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, nullcontext, suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from orchestrator.traces.sample import sample_traces
from tests.bench.plots import figure, stacked
from tests.bench.trends import drift
from tests.faults.invariants import log_replays, nothing_left, nothing_lost
from tests.faults.service import TOKEN, Service, docker, wait_for
from tests.postgres_from_wheel import PostgresFromWheel

ENDED = ("completed", "failed", "cancelled")
MODELS = ("demo-strong", "demo-weak")
SAMPLE_EVERY_S = 5.0
WARM_UP_S = 180.0
"""After a start, caches fill and libraries are loaded; growth is looked for after this time."""
MOST_OPEN = 6
MIB = 1 << 20


@dataclass(frozen=True)
class Sample:
    """What was seen at one moment of one life of the orchestrator."""

    at_s: float
    life: int
    life_s: float
    rss_mb: float
    pss_mb: float
    descriptors: int
    threads: int
    disk_mb: float
    api_ms: float
    event_ms: float
    ended: int


SERIES = {
    "rss_mb": "MB", "pss_mb": "MB", "descriptors": "open", "threads": "threads", "api_ms": "ms", "event_ms": "ms",
    "disk_mb": "MB",
}  # fmt: skip


class Watcher(threading.Thread):
    """Follows all events, and knows how long each took from its commit until it was here."""

    def __init__(self, service: Service) -> None:
        super().__init__(daemon=True)
        self._service = service
        self._last: int | None = None
        self.over = threading.Event()
        self.waits: list[float] = []
        self.ended: set[str] = set()

    def run(self) -> None:
        while not self.over.is_set():
            with suppress(httpx.HTTPError):
                self._follow(time.time())
            self.over.wait(0.3)

    def _follow(self, since: float) -> None:
        headers = {"authorization": f"Bearer {TOKEN}"} | ({} if self._last is None else {"last-event-id": str(self._last)})
        with httpx.stream("GET", f"{self._service.url}/api/events", headers=headers, timeout=60) as answer:
            for line in answer.iter_lines():
                if self.over.is_set():
                    return
                if line.startswith("data: ") and (event := json.loads(line[6:])).get("id"):
                    self._take(event, since)

    def _take(self, event: dict[str, Any], since: float) -> None:
        self._last = event["id"]
        at = datetime.fromisoformat(event["at"]).timestamp()
        if at > since:  # not one that was missed while there was no stream
            self.waits.append(1000 * (time.time() - at))
        if event["type"] == "transition" and event.get("status") in ENDED:
            self.ended.add(event["run_id"])


class Sampler(threading.Thread):
    def __init__(self, service: Service, watcher: Watcher) -> None:
        super().__init__(daemon=True)
        self._service, self._watcher = service, watcher
        self.began = self.born = time.monotonic()
        self.life = 0
        self.over = threading.Event()
        self.samples: list[Sample] = []

    def reborn(self) -> None:
        self.life, self.born = self.life + 1, time.monotonic()

    def run(self) -> None:
        with httpx.Client(base_url=self._service.url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
            while not self.over.wait(SAMPLE_EVERY_S):
                with suppress(httpx.HTTPError, OSError, AssertionError):  # between two lives
                    self.samples.append(self._sample(client))

    def _sample(self, client: httpx.Client) -> Sample:
        began, life = time.monotonic(), self.life
        client.get("/api/container-runs", params={"limit": 20}).raise_for_status()
        api_ms = 1000 * (time.monotonic() - began)
        process = Path(f"/proc/{self._service.pid}")
        memory = dict(line.split(":") for line in (process / "smaps_rollup").read_text().splitlines()[1:])
        status = (process / "status").read_text()
        waits, self._watcher.waits = self._watcher.waits, []
        before = self.samples[-1].event_ms if self.samples else 0.0
        return Sample(
            at_s=round(began - self.began, 1),
            life=life,
            life_s=round(began - self.born, 1),
            rss_mb=round(int(memory["Rss"].split()[0]) / 1024, 2),
            pss_mb=round(int(memory["Pss"].split()[0]) / 1024, 2),
            descriptors=len(list((process / "fd").iterdir())),
            threads=int(status.split("Threads:")[1].split()[0]),
            disk_mb=round(disk_bytes(self._service.data) / MIB, 2),
            api_ms=round(api_ms, 2),
            event_ms=round(median(waits), 2) if waits else before,
            ended=len(self._watcher.ended),
        )


def disk_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_blocks * 512
    return total


class Soak:
    """One random walk: what people do, and what goes wrong."""

    def __init__(self, service: Service, rng: random.Random, sampler: Sampler, restarts: list[float]) -> None:
        self._service, self._rng, self._sampler = service, rng, sampler
        self._restarts = sorted(restarts)
        self._evals: list[str] = []
        self.done: Counter[str] = Counter()
        self.errors: list[str] = []
        self._next_fault = 60.0

    # requests

    def ask(self, method: str, path: str, **fields: Any) -> httpx.Response | None:
        """None if the service was away or the request was refused. An error of the server is remembered."""
        try:
            answer = self._service.client.request(method, path, **fields)
        except httpx.HTTPError as error:
            self.errors.append(f"{method} {path}: {error!r}")
            return None
        if answer.status_code >= 500 and answer.status_code != 503:
            self.errors.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
        return answer if answer.is_success else None

    def live(self) -> list[dict[str, Any]]:
        answer = self.ask("GET", "/api/jobs", params={"limit": 50})
        return [] if answer is None else [each for each in answer.json()["items"] if each["status"] not in ENDED]

    def begin(self) -> None:
        """Two schedules that fire every few minutes, and traces for evals."""
        for minutes, model in zip((2, 3), MODELS, strict=True):
            body = {"model_id": model, "cron_expression": f"*/{minutes} * * * *", "sample_size": 3, "benchmarks": ["sample"]}
            assert self.ask("POST", "/api/schedules", json=body) is not None, self.errors
        made = self.ask("POST", "/api/eval-sets", json={"name": "soak"})
        assert made is not None, self.errors
        self._eval_set = made.json()["id"]
        self._import(60, labelled=True)

    def _import(self, count: int, *, labelled: bool = False) -> None:
        rows = list(sample_traces(count, seed=self._rng.randrange(1 << 30)))
        for row in rows if not labelled else []:
            row.pop("label")
        body = "".join(json.dumps(row) + "\n" for row in rows)
        self.ask("POST", "/api/traces", params={"eval_set_id": self._eval_set}, content=body)

    # what people do

    def run(self) -> None:
        shape = {"sample_size": self._rng.randint(2, 12), "concurrency": self._rng.randint(1, 4)}
        body = {"model_id": self._rng.choice(MODELS), "instance_type": "standard-1", **shape}
        self.ask("POST", "/api/container-runs", json=body)

    def batch(self) -> None:
        each = {"benchmarks": ["sample"], "sample_size": self._rng.randint(2, 5)}
        self.ask("POST", "/api/batches", json={"models": list(MODELS), "instance_types": ["standard-1"], **each})

    def eval(self) -> None:
        if self._rng.random() < 0.3 or not self._evals:
            self.ask("POST", f"/api/eval-sets/{self._eval_set}/generate", json={"model_id": "demo-strong"})
            found = self.ask("GET", "/api/evals", params={"limit": 20})
            self._evals = [] if found is None else [each["id"] for each in found.json()["items"]]
        else:
            self._import(20)
            self.ask("POST", f"/api/evals/{self._rng.choice(self._evals)}/execute")

    def cancel(self) -> None:
        if live := self.live():
            self.ask("POST", f"/api/container-runs/{self._rng.choice(live)['id']}/cancel")

    def read(self) -> None:
        runs = self.ask("GET", "/api/container-runs", params={"limit": 50, "status": "completed"})
        if runs is None or not (ids := [each["id"] for each in runs.json()["items"]]):
            return
        one, other = self._rng.choice(ids), self._rng.choice(ids)
        paths = ["/", "/runs", f"/runs/{one}", f"/compare?run={one}&run={other}", "/leaderboard", "/schedules", "/models"]
        paths += [f"/api/container-runs/{one}/archive", f"/api/container-runs/{one}/items", "/api/fleet", "/metrics"]
        for path in self._rng.sample(paths, 3):
            self.ask("GET", path)

    # what goes wrong

    def container_killed(self) -> None:
        self._to_a_container("kill")

    def container_paused(self) -> None:
        self._to_a_container("pause")

    def container_removed(self) -> None:
        self._to_a_container("rm", "-f")

    def _to_a_container(self, *command: str) -> None:
        if names := self._service.containers():
            docker(*command, self._rng.choice(names), check=False)

    def restart(self) -> None:
        if self._rng.random() < 0.5:
            self._service.kill()
        else:
            self._service.stop()
        time.sleep(self._rng.uniform(0, 3))
        self._service.start()
        self._sampler.reborn()

    def step(self, at_s: float) -> None:
        acts: list[tuple[Callable[[], None], int]] = [(self.read, 12), (self.cancel, 1)]
        if len(self.live()) < MOST_OPEN:
            acts += [(self.run, 10), (self.batch, 1), (self.eval, 3)]
        self._do(self._rng.choices([act for act, _ in acts], [weight for _, weight in acts])[0], at_s)
        if self._restarts and at_s >= self._restarts[0]:
            self._restarts.pop(0)
            self._do(self.restart, at_s)
        elif at_s >= self._next_fault:
            self._next_fault = at_s + self._rng.expovariate(1 / 60)
            self._do(self._rng.choice([self.container_killed, self.container_paused, self.container_removed]), at_s)

    def _do(self, act: Callable[[], None], at_s: float) -> None:
        self.done[act.__name__] += 1
        if act.__name__ not in ("run", "read", "cancel", "eval"):
            print(f"{at_s:7.0f} s  {act.__name__}", flush=True)
        act()

    # the end

    def come_to_rest(self) -> Counter[str]:
        """How many runs ended in which way. Fails if an invariant is broken."""
        instants = {model: self._fires(model) for model in MODELS}
        for model in MODELS:
            self.ask("DELETE", f"/api/schedules/{model}")
        wait_for(lambda: not self.live(), 180, "every run has ended")
        nothing_left(self._service)
        ways: Counter[str] = Counter()
        for run in self._all_runs():
            ways[run["status"] + (f" ({run['reason']})" if run["status"] == "failed" else "")] += 1
            whole = self._service.run(run["id"])
            if whole["status"] == "completed":
                nothing_lost(self._service, whole)
            log_replays(self._service, whole)
        for (model, seen), minutes in zip(instants.items(), (2, 3), strict=True):
            steps = {later - earlier for earlier, later in pairwise(seen)}
            assert steps <= {timedelta(minutes=minutes)}, f"an instant of {model} is missing or double: {seen}"
        return ways

    def _fires(self, model: str) -> list[datetime]:
        answer = self.ask("GET", f"/api/schedules/{model}/fires", params={"limit": 500})
        assert answer is not None
        rows = [each for each in answer.json()["items"] if each["cause"] == "cron"]
        return sorted(datetime.fromisoformat(each["instant"]) for each in rows)

    def _all_runs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        after: str | None = None
        while True:
            params = {"limit": "200"} | ({"after": after} if after else {})
            page = self._service.client.get("/api/container-runs", params=params).json()
            found += page["items"]
            if (after := page["next"]) is None:
                return found


def report(samples: list[Sample], folder: Path) -> list[str]:
    """Writes the table and the picture, and says which series grow."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "soak.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(asdict(samples[0])))
        writer.writeheader()
        writer.writerows(asdict(sample) for sample in samples)
    lives = [[each for each in samples if each.life == life] for life in sorted({each.life for each in samples})]
    restarts = [life[0].at_s / 60 for life in lives[1:]]

    def panel(title: str, y_title: str, **names: str) -> str:
        lines = {name: [(each.at_s / 60, float(getattr(each, key))) for each in samples] for key, name in names.items()}
        shown = {"x_title": "minutes; dashed: the orchestrator was killed or stopped", "y_title": y_title}
        return figure(title, lines, **shown, marks=False, events=restarts, height=190)

    panels = [
        panel("Memory of the orchestrator", "MB", rss_mb="RSS", pss_mb="PSS"),
        panel("File descriptors and threads", "number", descriptors="file descriptors", threads="threads"),
        panel("Latency", "ms", api_ms="GET of 20 runs", event_ms="event, from its commit to a stream"),
        panel("Data directory", "MB", disk_mb="disk"),
        panel("Runs that ended", "runs", ended="runs"),
    ]
    (folder / "soak.svg").write_text(stacked(panels))
    words = []
    for key, unit in SERIES.items():
        if key == "disk_mb":  # it does not begin anew with a process
            series = [[(each.at_s, each.disk_mb) for each in samples]]
        else:
            series = [[(each.at_s, float(getattr(each, key))) for each in life if each.life_s > WARM_UP_S] for life in lives]
        if any(series):
            words.append(f"{key:12} {drift([life for life in series if life]).words(unit)}")
    return words


def soak(hours: float, seed: int, folder: Path, containers: int, url: str | None) -> int:
    rng = random.Random(seed)
    length = 3600 * hours
    restarts = [rng.uniform(0.1, 0.9) * length for _ in range(max(1, round(1.5 * hours)))]
    limits = {"max_instances": containers, "lease_s": 10, "suspect_s": 5, "demo_latency_s": 0.6}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        service = Service(Path(directory) / "data", database_url=url, **limits)
        watcher = Watcher(service)
        sampler = Sampler(service, watcher)
        work = Soak(service, rng, sampler, restarts)
        try:
            service.start()
            work.begin()
            watcher.start()
            sampler.start()
            while (at_s := time.monotonic() - sampler.began) < length:
                work.step(at_s)
                time.sleep(rng.expovariate(1 / 3))
            ways = work.come_to_rest()
        finally:
            sampler.over.set()
            watcher.over.set()
            if sampler.samples:
                words = report(sampler.samples, folder)
            service.close()
    print(f"\n{hours} h, seed {seed}, {containers} containers at once, {'SQLite' if url is None else 'PostgreSQL'}")
    print("done:  " + ", ".join(f"{name} {count}" for name, count in work.done.most_common()))
    print("ended: " + ", ".join(f"{name} {count}" for name, count in ways.most_common()))
    print("invariants hold: nothing lost or doubled, every log replays, no container left, every instant has one row")
    print("\n".join([*words, *(f"ERROR {each}" for each in work.errors)]))
    return 1 if work.errors else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.soak")
    parser.add_argument("--hours", type=float, default=4.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/soak"))
    parser.add_argument("--containers", type=int, default=2)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # leaves through every `finally`, so that nothing is left behind
    with closing(PostgresFromWheel()) if options.database == "postgresql" else nullcontext() as server:
        if server is not None:
            server.start()
        url = None if server is None else server.url(server.create())
        return soak(options.hours, options.seed, options.out, options.containers, url)


if __name__ == "__main__":
    raise SystemExit(main())
