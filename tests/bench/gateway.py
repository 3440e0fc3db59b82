"""What the gateway adds to a model call: the same questions to the same provider, directly and through it.

    .venv/bin/python -m tests.bench.gateway [LATENCY_S] [AT_ONCE ...]

Provider, gateway and asker are a process each; the gateway has its ledger in SQLite (synchronous=FULL), or in the
database of DATABASE_URL, and authenticates a run's token as the service does. Direct and gateway calls go on at the same
time, half of the askers each, so that a busy machine slows both alike. The gateway's CPU time per call hardly depends on
who else uses the machine; what it needs when idle is taken off. Before each measurement the limiter is brought up to the
number of calls at once.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import httpx

from orchestrator.clock import SystemClock
from orchestrator.db.migrate import migrate
from orchestrator.db.session import Database, database_url
from orchestrator.db.tables import Attempt, ContainerRun, LlmModel
from orchestrator.identifiers import token_hash, uuid7
from orchestrator.settings import Settings
from tests.faults.counting_provider import CountingProvider
from tests.faults.service import ROOT, free_ports, wait_for

TOKEN = "bench-token"
MODEL = "counting"
PROMPT = "Write a program that reads a number and prints its square.\n" * 40
IDLE_S = 5.0
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


async def serve(port: int, data: Path) -> None:
    """The gateway alone, put together as the service does it, with one run that lives for ever."""
    from orchestrator.api.middleware import Guard
    from orchestrator.api.problems import not_found
    from orchestrator.gateway.router import Gateway
    from orchestrator.gateway_wiring import open_gateway
    from orchestrator.routing import body_cap_of, deadline_of
    from orchestrator.runner_door import QuietServer, server_config

    url = database_url(os.environ.get("DATABASE_URL"), data)
    migrate(url)
    db, clock, settings = Database(url), SystemClock(), Settings(data=data)
    now = datetime.now(UTC)
    run = ContainerRun(
        id=uuid7(now), model_id=0, benchmarks=["sample"], sample_size=1, instance_type="lite", deadline_s=3600,
        plan=[{"name": "sample", "adapter": "x", "pack_digest": "x", "problem_ids": [f"p{n}" for n in range(1000)]}],
        status="running", attempt=1, created_at=now, started_at=now,
    )  # fmt: skip
    attempt = Attempt(
        run_id=run.id, number=1, token_hash=token_hash(TOKEN), engine="fake", instance_type="lite", container_name="x",
        dispatched_at=now,
    )  # fmt: skip

    def seed(session: object) -> None:
        model = LlmModel(
            slug=run.id, provider="openai", name=MODEL, protocol="openai_chat", input_price=1.0, output_price=2.0,
            created_at=now, updated_at=now,
        )  # fmt: skip
        for row in (model, run, attempt):
            run.model_id = model.id or 0
            session.add(row)  # type: ignore[attr-defined]
            session.flush()  # type: ignore[attr-defined]

    await db.write(seed)
    async with open_gateway(settings, db, clock, "bench") as deps:
        app = Guard(Gateway(deps, not_found), body_cap=body_cap_of(settings), deadline=deadline_of(settings))
        await QuietServer(server_config(app, "127.0.0.1", port)).serve()
    await db.close()


class Asker:
    """Asks one address, some number of times at once, each time on a connection of its own: a pool would cost time too."""

    def __init__(self, url: str, rng: random.Random) -> None:
        self._url, self._rng = url, rng
        self._asked = 0
        self._clients: list[httpx.AsyncClient] = []

    async def many(self, at_once: int, rounds: int, latency_s: float) -> list[float]:
        while len(self._clients) < at_once:
            self._clients.append(httpx.AsyncClient(timeout=120, trust_env=False, verify=False))

        async def worker(client: httpx.AsyncClient) -> list[float]:
            await asyncio.sleep(self._rng.uniform(0, latency_s))
            return [await self._ask(client) for _ in range(rounds)]

        parts = await asyncio.gather(*(worker(client) for client in self._clients[:at_once]))
        return [took for part in parts for took in part]

    async def close(self) -> None:
        for client in self._clients:
            await client.aclose()

    async def _ask(self, client: httpx.AsyncClient) -> float:
        self._asked += 1
        body = {
            "model": MODEL,
            "max_completion_tokens": 1000,
            "stream": True,
            "messages": [{"role": "user", "content": f"{self._asked} {PROMPT}"}],
        }
        headers = {"authorization": f"Bearer {TOKEN}", "x-benchyard-call": f"bench/{self._asked}/0/0"}
        began = time.perf_counter()
        answer = await client.post(f"{self._url}/chat/completions", json=body, headers=headers)
        took = time.perf_counter() - began
        assert answer.status_code == 200, answer.text
        assert answer.content.rstrip().endswith(b"[DONE]"), answer.text[-200:]
        return took


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def memory_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(int(len(times) * share), len(times) - 1)]


async def measure(provider: str, gateway: str, pid: int, latency_s: float, at_once: list[int]) -> None:
    rng = random.Random(1)
    direct, through = Asker(provider, rng), Asker(gateway, rng)
    print(f"provider answers in {latency_s:g} s; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("at once   calls   direct p50   p99   gateway p50   p99   added p50   p99 (ms)   CPU ms/call   MiB")
    began = cpu_s(pid)
    await asyncio.sleep(IDLE_S)
    idle = (cpu_s(pid) - began) / IDLE_S
    for number in at_once:
        rounds = max(3, 60 // number)
        for _ in range(1 if number <= 16 else 2):
            await asyncio.gather(through.many(number, 1, latency_s), direct.many(number, 1, latency_s))
        began, at = cpu_s(pid), time.monotonic()
        plain, ours = await asyncio.gather(direct.many(number, rounds, latency_s), through.many(number, rounds, latency_s))
        spent = (cpu_s(pid) - began - idle * (time.monotonic() - at)) / len(ours)
        a50, a99, b50, b99 = (1e3 * percentile(t, s) for t in (plain, ours) for s in (0.5, 0.99))
        print(
            f"{number:7} {len(ours):7} {a50:12.1f} {a99:5.0f} {b50:13.1f} {b99:5.0f} {b50 - a50:11.1f} "
            f"{b99 - a99:5.1f} {1e3 * spent:18.2f} {memory_mib(pid):5.0f}",
            flush=True,
        )
    print(f"load of the machine {os.getloadavg()[0]:.1f}")
    await direct.close()
    await through.close()


def main() -> None:
    latency_s = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    at_once = [int(each) for each in sys.argv[2:]] or [1, 16, 200]
    (port,) = free_ports(1)
    with (
        tempfile.TemporaryDirectory() as directory,
        CountingProvider(Path(directory) / "provider.log", latency_s) as provider,
    ):
        env = {**os.environ, "OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": "bench"}
        command = [sys.executable, "-m", "tests.bench.gateway", "serve", str(port), directory]
        gateway = subprocess.Popen(command, cwd=ROOT, env=env)
        url = f"http://127.0.0.1:{port}/gateway/openai/v1"
        try:
            wait_for(lambda: listens(url), 60, "the gateway listens")
            asyncio.run(measure(provider.base_url, url, gateway.pid, latency_s, at_once))
        finally:
            gateway.terminate()
            gateway.wait(20)


def listens(url: str) -> bool:
    try:
        return httpx.post(f"{url}/chat/completions", trust_env=False).status_code == httpx.codes.UNAUTHORIZED
    except httpx.HTTPError:
        return False


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(int(sys.argv[2]), Path(sys.argv[3])))
    else:
        main()
