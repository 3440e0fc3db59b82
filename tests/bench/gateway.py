"""What the gateway adds to a model call: the same questions to the same provider, directly and through it.

    .venv/bin/python -m tests.bench.gateway [--tokens N] [--per-s N] [--whole] [--core N] [LATENCY_S] [AT_ONCE ...]

Provider, gateway and asker are a process each; the gateway has its ledger in SQLite (synchronous=FULL), or in the
database of DATABASE_URL, and authenticates a run's token as the service does. `--tokens`: the answer comes token by token
after LATENCY_S. `--whole`: it is not asked for as a stream. `--core`: the gateway has that core, provider and asker the
others. Direct and gateway calls go on at the same time, so that a busy machine slows both alike; at most 50 are direct.

Times are those of the asker, to the first and to the last byte of the answer. The gateway gives an answer only when it is
stored, so its first byte comes with its last: what it adds is the time between the last bytes. Its CPU time per call hardly
depends on who else uses the machine; what it needs when idle is taken off. Before each measurement the limiter is brought
up to the number of calls at once. `stolen` is the share of the processors that a virtual machine was not given meanwhile:
above some per cent the times are the neighbours', not the gateway's.
"""

from __future__ import annotations

import argparse
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
from starlette.routing import Mount

from orchestrator.accounts.vault import load_vault
from orchestrator.db.migrate import migrate
from orchestrator.db.session import Database, database_url
from orchestrator.gateway.edge.router import Gateway
from orchestrator.gateway.providers.directory import ProviderDirectory
from orchestrator.gateway.wiring import open_gateway
from orchestrator.http.access.guard import Guard
from orchestrator.http.policy import MODEL_CALLS, set_policy
from orchestrator.http.problems import not_found
from orchestrator.http.route_table import RouteTable
from orchestrator.models.tables import LlmModel
from orchestrator.provider_keys.service import KeyPolicy, ProviderKeys
from orchestrator.runs.queueing.plan import PositionCache
from orchestrator.runs.tables import Attempt, ContainerRun
from orchestrator.serving.runner_listener import QuietServer, server_config
from orchestrator.settings import Settings
from orchestrator.system import event_loop
from orchestrator.system.clock import SystemClock
from orchestrator.system.identifiers import token_hash, uuid7
from runner.contract.run_spec import call_key
from tests.bench.token_provider import TokenProvider
from tests.faults.service import ROOT, free_ports, wait_for
from tests.rows import a_benchmark_task

TOKEN = "bench-token"
MODEL = "counting"
PROMPT = "Write a program that reads a number and prints its square.\n" * 40
IDLE_S = 5.0
MOST_DIRECT = 50
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


async def serve(port: int, data: Path) -> None:
    """The gateway alone, put together as the service does it, with one run that lives for ever."""
    url = database_url(os.environ.get("DATABASE_URL"), data)
    migrate(url)
    db, clock, settings = Database(url), SystemClock(), Settings(data=data)
    now = datetime.now(UTC)
    run = ContainerRun(
        id=uuid7(now), model_id=0, benchmarks=["sample"], sample_size=1, instance_type="lite", deadline_s=3600,
        task=a_benchmark_task(problem_ids=[f"p{n}" for n in range(50_000)]),
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

    async def nobody(user_id: int) -> None:
        return None

    keys = ProviderKeys(
        db, clock, load_vault(None, None, data), ProviderDirectory(os.environ), KeyPolicy(system_for_all=True), nobody
    )
    async with open_gateway(settings, db, clock, "bench", keys, PositionCache()) as deps:
        mount, routes = Mount("/gateway", not_found), RouteTable(settings)
        set_policy(mount, MODEL_CALLS)
        routes.read([mount])
        app = Guard(Gateway(deps, not_found), routes=routes)
        await QuietServer(server_config(app, "127.0.0.1", port)).serve()
    await db.close()


class Asker:
    """Asks one address, some number of times at once, each time on a connection of its own: a pool would cost time too."""

    def __init__(self, url: str, rng: random.Random, *, stream: bool) -> None:
        self._url, self._rng, self._stream = url, rng, stream
        self._asked = 0
        self._clients: list[httpx.AsyncClient] = []

    async def many(self, at_once: int, rounds: int, spread_s: float) -> list[tuple[float, float]]:
        """Seconds to the first and to the last byte."""
        while len(self._clients) < at_once:
            self._clients.append(httpx.AsyncClient(timeout=120, trust_env=False, verify=False))

        async def worker(client: httpx.AsyncClient) -> list[tuple[float, float]]:
            await asyncio.sleep(self._rng.uniform(0, spread_s))
            return [await self._ask(client) for _ in range(rounds)]

        parts = await asyncio.gather(*(worker(client) for client in self._clients[:at_once]))
        return [took for part in parts for took in part]

    async def close(self) -> None:
        for client in self._clients:
            await client.aclose()

    async def _ask(self, client: httpx.AsyncClient) -> tuple[float, float]:
        self._asked += 1
        body = {
            "model": MODEL,
            "max_completion_tokens": 1000,
            "stream": self._stream,
            "messages": [{"role": "user", "content": f"{self._asked} {PROMPT}"}],
        }
        headers = {"authorization": f"Bearer {TOKEN}", "x-benchyard-call": call_key("sample", f"p{self._asked}", 0)}
        began, first, last = time.perf_counter(), 0.0, b""
        async with client.stream("POST", f"{self._url}/chat/completions", json=body, headers=headers) as answer:
            async for piece in answer.aiter_raw():
                first, last = first or time.perf_counter() - began, piece
        took = time.perf_counter() - began
        assert answer.status_code == 200, last
        assert b"[DONE]" in last or not self._stream, last[-200:]
        return first, took


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def stolen_s() -> float:
    return int(Path("/proc/stat").read_text().split()[8]) * TICK_S


def memory_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(int(len(times) * share), len(times) - 1)]


async def measure(provider: str, gateway: str, pid: int, asked: argparse.Namespace) -> None:
    rng, takes_s = random.Random(1), asked.latency_s + asked.tokens / asked.per_s
    direct, through = (Asker(url, rng, stream=not asked.whole) for url in (provider, gateway))
    form = "whole" if asked.whole else f"streamed, {asked.tokens} tokens at {asked.per_s:g}/s"
    print(f"answers {form}, after {asked.latency_s:g} s; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("           direct, ms               gateway, ms              added to the last byte, ms")
    print("at once   calls   first p50   last p50   first p50   last p50       p50     p99   CPU ms/call   MiB   stolen")
    began = cpu_s(pid)
    await asyncio.sleep(IDLE_S)
    idle = (cpu_s(pid) - began) / IDLE_S
    for number in asked.at_once:
        rounds, beside = max(3, 60 // number), min(number, MOST_DIRECT)
        for _ in range(1 if number <= 16 else 2):
            await asyncio.gather(through.many(number, 1, takes_s), direct.many(beside, 1, takes_s))
        began, at, stolen = cpu_s(pid), time.monotonic(), stolen_s()
        plain, ours = await asyncio.gather(direct.many(beside, rounds, takes_s), through.many(number, rounds, takes_s))
        spent = (cpu_s(pid) - began - idle * (time.monotonic() - at)) / len(ours)
        stolen = (stolen_s() - stolen) / (time.monotonic() - at) / (os.cpu_count() or 1)
        first, last, our_first, our_last = (
            1e3 * percentile([t[n] for t in all_], 0.5) for all_ in (plain, ours) for n in (0, 1)
        )
        late, our_late = (1e3 * percentile([t[1] for t in all_], 0.99) for all_ in (plain, ours))
        print(
            f"{number:7} {len(ours):7} {first:11.1f} {last:10.1f} {our_first:11.1f} {our_last:10.1f} {our_last - last:9.1f} "
            f"{our_late - late:7.1f} {1e3 * spent:13.2f} {memory_mib(pid):5.0f} {100 * stolen:6.1f} %",
            flush=True,
        )
    print(f"load of the machine {os.getloadavg()[0]:.1f}")
    await direct.close()
    await through.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("latency_s", type=float, nargs="?", default=1.0)
    parser.add_argument("at_once", type=int, nargs="*", default=[1, 16, 200])
    parser.add_argument("--tokens", type=int, default=0)
    parser.add_argument("--per-s", type=float, default=50.0)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--core", type=int)
    asked = parser.parse_args()
    (port,) = free_ports(1)
    cores = os.sched_getaffinity(0)
    if asked.core is not None:
        os.sched_setaffinity(0, cores - {asked.core} or cores)
    with tempfile.TemporaryDirectory() as directory, TokenProvider(asked.latency_s, asked.tokens, asked.per_s) as provider:
        env = {**os.environ, "OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": "bench"}
        command = [sys.executable, "-m", "tests.bench.gateway", "serve", str(port), directory]
        gateway = subprocess.Popen(command, cwd=ROOT, env=env)
        os.sched_setaffinity(gateway.pid, cores if asked.core is None else {asked.core})
        url = f"http://127.0.0.1:{port}/gateway/openai/v1"
        try:
            wait_for(lambda: listens(url), 60, "the gateway listens")
            asyncio.run(measure(provider.base_url, url, gateway.pid, asked))
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
        event_loop.run(serve(int(sys.argv[2]), Path(sys.argv[3])))
    else:
        main()
