"""A run of kind `command`: warm-ups, then the repeats in sequence, each reported as an item; finally `output.txt`."""

import asyncio
import json
import socket
from typing import Any

import httpx

from runner.commands.capture import shortened
from runner.commands.measuring_process import GO
from runner.contract.commands import CommandTask, RepeatFacts
from runner.contract.events import FailureReason, ItemResult, Outcome, Stage, Usage
from runner.contract.run_spec import RunSpec
from runner.errors import RunFailed
from runner.log import Log
from runner.reporting.reporter import Reporter
from runner.reporting.truncation import clean

MAX_ANSWER = 64 << 20
EXCERPT = 64 << 10
OUTPUT_BYTES = 16 << 20
PATIENCE_S = 60.0
UPLOAD_S = 60.0


class CommandWork:
    def __init__(self, spec: RunSpec, task: CommandTask, link: socket.socket, reporter: Reporter, log: Log) -> None:
        self._spec, self._task, self._reporter, self._log = spec, task, reporter, log
        self._link = link
        self._now = "starts"
        self._output: list[str] = []
        self._room = OUTPUT_BYTES

    async def run(self, base: str, client: httpx.AsyncClient, facts: dict[str, Any]) -> int:
        """Returns how many repeats were done."""
        reader, writer = await asyncio.open_connection(sock=self._link, limit=MAX_ANSWER)
        hello = await self._answer(reader, PATIENCE_S)
        waiting = self._waiting()
        self._reporter.stage(Stage.RUNNING, items=len(waiting), network=hello["network"], **facts)
        try:
            for number in range(self._task.warmups if waiting else 0):
                self._now = f"warm-up {number + 1} of {self._task.warmups}"
                await self._warm_up(await self._repeat(reader, writer))
            for benchmark, problem_id, sample in waiting:
                self._now = f"repeat {sample + 1} of {self._task.repeats}"
                answer = await self._repeat(reader, writer)
                item = item_of(answer, benchmark, problem_id, sample, self._task)
                self._keep(self._now, item, answer["output"])
                await self._reporter.item(item)
        finally:
            writer.close()
            await self._leave_output(client, base)
        return len(waiting)

    def _waiting(self) -> list[tuple[str, str, int]]:
        done = {(key.benchmark, key.problem_id, key.sample_index) for key in self._spec.finished}
        return [
            (part.name, problem_id, sample)
            for part in self._spec.benchmarks
            for problem_id, sample in part.items(self._spec.samples_per_problem)
            if (part.name, problem_id, sample) not in done
        ]

    async def _repeat(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> dict[str, Any]:
        writer.write(GO)
        await writer.drain()
        return await self._answer(reader, self._task.timeout_s + PATIENCE_S)

    async def _answer(self, reader: asyncio.StreamReader, limit_s: float) -> dict[str, Any]:
        try:
            async with asyncio.timeout(limit_s):
                line = await reader.readline()
            return dict(json.loads(line))
        except (TimeoutError, ValueError, OSError) as error:
            raise RunFailed(
                FailureReason.RUNNER_ERROR, f"the measuring process gave no answer: {type(error).__name__}"
            ) from error

    async def _warm_up(self, answer: dict[str, Any]) -> None:
        item = item_of(answer, "", "", 0, self._task)
        failed = item.outcome is not Outcome.PASSED
        line = f"{self._now}: {item.usage.wall_s:.3f} s" + (f", {item.outcome.value}: {item.detail}" if failed else "")
        self._reporter.log("warning" if failed else "info", line)
        self._keep(self._now, item, answer["output"])

    def _keep(self, title: str, item: ItemResult, output: str) -> None:
        head = f"=== {title}: {item.exit}, {item.usage.wall_s:.3f} s\n"
        text = head + shortened(clean(output), max(self._room, 1000)).rstrip("\n") + "\n"
        self._room -= len(text)
        self._output.append(text)

    async def _leave_output(self, client: httpx.AsyncClient, base: str) -> None:
        """Uploads the commands' output as a file of the run. The run does not fail if this fails."""
        number = self._spec.attempt
        name = "output.txt" if number == 1 else f"output-a{number}.txt"
        body = "".join(self._output).encode("utf-8", "replace")
        if not body:
            return
        try:
            answer = await client.put(f"{base}/artefacts/{name}", content=body, timeout=UPLOAD_S)
            trouble = None if answer.is_success else f"status {answer.status_code}"
        except httpx.HTTPError as error:
            trouble = f"{type(error).__name__}: {error}"
        if trouble:
            self._log("command.output_not_left", trouble=trouble)


def item_of(answer: dict[str, Any], benchmark: str, problem_id: str, sample: int, task: CommandTask) -> ItemResult:
    outcome, end = verdict(answer)
    detail = {
        Outcome.TIME_LIMIT: f"time limit of {task.timeout_s:g} s exceeded",
        Outcome.MEMORY_LIMIT: "out of memory; choose a larger instance type",
        Outcome.RUNTIME_ERROR: end,
    }.get(outcome, "")
    missing = answer["missing"] if outcome is Outcome.PASSED else []
    details = [answer["trouble"] or detail, *(f"figure not found: {name}" for name in missing)]
    facts = RepeatFacts(
        **{name: answer[name] for name in ("exit_code", "signal", "throttled_s", "figures", "output_bytes")},
        user_s=round(answer["user_s"], 6),
        system_s=round(answer["system_s"], 6),
        output=clean(shortened(answer["output"], EXCERPT)),
    )
    return ItemResult(
        benchmark=benchmark,
        problem_id=problem_id,
        sample_index=sample,
        outcome=outcome,
        detail=clean("; ".join(filter(None, details))),
        usage=Usage(
            cpu_s=round(answer["user_s"] + answer["system_s"], 6),
            wall_s=round(answer["wall_s"], 6),
            peak_bytes=max(0, answer["peak_bytes"]),
        ),
        exit=end,
        repeat=facts,
    )


def verdict(answer: dict[str, Any]) -> tuple[Outcome, str]:
    """Returns the outcome, and how the first process ended, in words."""
    end = f"exit {answer['exit_code']}" if answer["signal"] is None else f"signal {answer['signal']}"
    if answer["timed_out"]:
        return Outcome.TIME_LIMIT, end
    if answer["out_of_memory"]:
        return Outcome.MEMORY_LIMIT, end
    return (Outcome.PASSED if answer["exit_code"] == 0 else Outcome.RUNTIME_ERROR), end
