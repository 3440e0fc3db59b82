"""A run of kind `harness`: starts the harness, answers its calls, reports its items while it runs, and judges its end."""

import asyncio
import base64
import contextlib
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import PurePosixPath
from typing import Any

import httpx
from pydantic import ValidationError

from runner.commands.capture import shortened
from runner.contract.events import FailureReason, ItemResult, Outcome, Stage
from runner.contract.harness import MAX_HARNESS_ITEMS, HarnessTask
from runner.contract.run_spec import RunSpec
from runner.errors import BudgetExhausted, CallError, PriceUnknown, RunFailed
from runner.harness.http_server import serve
from runner.harness.model_endpoint import MAX_BODY_BYTES, ModelEndpoint
from runner.harness.processes import GO, HarnessProcesses
from runner.harness.readers.item import HarnessItem
from runner.log import Log
from runner.reporting.reporter import Reporter
from runner.reporting.truncation import clean

MAX_LINE = 64 << 20
READ_S, RAREST_READ_S = 2.0, 15.0
"""Between two readings of the results; readings that find nothing become rarer."""
LAST_LINES, LAST_CHARS = 15, 2_000
TEXT_CHARS = 512 << 20
"""For the inputs and outputs of all items of a run together; further items are reported without theirs."""
OUTPUT_CHARS = 4 << 20
RESULT_FILE_BYTES, RESULT_FILES = 64 << 20, 20
UPLOAD_S = 120.0
PREFIX = "results-"


class HarnessWork:
    def __init__(
        self,
        spec: RunSpec,
        task: HarnessTask,
        processes: HarnessProcesses,
        reporter: Reporter,
        log: Log,
        *,
        read_s: float = READ_S,
    ) -> None:
        self._spec, self._task, self._processes, self._reporter, self._log = spec, task, processes, reporter, log
        self._read_s = read_s
        self._reported = {(key.problem_id, key.sample_index) for key in spec.finished}
        self._marks: dict[str, int] = {}
        self._expected: dict[str, int] = {}
        self._trouble: dict[str, str] = {}
        self._room = TEXT_CHARS
        self._over: asyncio.Future[CallError] = asyncio.get_running_loop().create_future()
        self._items = 0

    async def run(self, base: str, client: httpx.AsyncClient, facts: dict[str, Any]) -> int:
        """Returns how many items were reported."""
        endpoint = ModelEndpoint(self._spec, self._log, on_end=self._end, changed=self._reporter.beat_soon)
        server = await serve(self._processes.listener, endpoint.answer, max_body_bytes=MAX_BODY_BYTES)
        self._reporter.waiting_for = lambda: endpoint.waiting_for
        self._reporter.stage(Stage.RUNNING, **facts)
        if self._processes.facts["network"] == "not restricted":
            self._reporter.log("warning", "the harness is not kept from the network: this machine does not allow that")
        reader, orders = await asyncio.open_connection(sock=self._processes.starter, limit=MAX_LINE)
        self._lines, self._wishes = await asyncio.open_connection(sock=self._processes.reading, limit=MAX_LINE)
        try:
            result = await self._followed(reader, orders)
            await self._read(final=True)
            await self._leave_files(client, base, result)
        finally:
            server.close()
            orders.close()
            self._wishes.close()
            await endpoint.close()
            if self._processes.remove is not None:
                shutil.rmtree(self._processes.remove, ignore_errors=True)
        self._judge(result)
        return self._items

    def _end(self, error: CallError) -> None:
        if not self._over.done():
            self._over.set_result(error)

    async def _followed(self, reader: asyncio.StreamReader, orders: asyncio.StreamWriter) -> dict[str, Any]:
        """The end of the harness. While it runs, its items are reported."""
        orders.write(GO)
        ending: asyncio.Future[bytes] = asyncio.ensure_future(reader.readline())
        pause_s = self._read_s
        try:
            while not ending.done():
                await asyncio.wait((ending, self._over), timeout=pause_s, return_when=asyncio.FIRST_COMPLETED)
                if self._over.done() and not ending.done():
                    orders.write(b"stop\n")
                    break
                before = self._items
                await self._read(final=False)
                pause_s = self._read_s if self._items > before else min(2 * pause_s, max(self._read_s, RAREST_READ_S))
            return dict(json.loads(await ending))
        except ValueError as error:
            raise RunFailed(FailureReason.RUNNER_ERROR, "the process of the harness gave no answer") from error
        finally:
            ending.cancel()

    async def _read(self, *, final: bool) -> None:
        """Reports what is new. A last reading begins at the beginning, for harnesses that rewrite their files."""
        marks = {} if final else self._marks
        async for message in self._ordered({"marks": marks, "final": final}):
            if "item" in message:
                await self._report(HarnessItem(**message["item"]))
            elif "file" in message:
                self._note(message, final)

    async def _ordered(self, order: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """The answers of the reading process to one order. A line that was cut off is left out."""
        self._wishes.write(json.dumps(order).encode() + b"\n")
        while line := await self._lines.readline():
            with contextlib.suppress(ValueError, TypeError):
                message = json.loads(line)
                if "end" in message:
                    if message["end"]:
                        self._log("harness.reading_ended", code=message["end"])
                    return
                yield message
        raise RunFailed(FailureReason.RUNNER_ERROR, "the reading process ended")

    def _note(self, message: dict[str, Any], final: bool) -> None:
        path = str(message["file"])
        self._marks[path] = int(message["mark"])
        if message["trouble"]:
            if self._trouble.get(path) != message["trouble"] and final:
                self._reporter.log("warning", f"results: {message['trouble']}")
            self._trouble[path] = str(message["trouble"])
        else:
            self._trouble.pop(path, None)
        if message["expected"] is not None and self._expected.get(path) != message["expected"]:
            self._expected[path] = int(message["expected"])
            self._reporter.expected(min(sum(self._expected.values()), MAX_HARNESS_ITEMS))

    async def _report(self, item: HarnessItem) -> None:
        key = (item.id, item.sample_index)
        if key in self._reported or len(self._reported) >= MAX_HARNESS_ITEMS:
            return
        self._reported.add(key)
        self._room -= len(item.input) + len(item.output)
        with contextlib.suppress(ValidationError):
            await self._reporter.item(item_result(self._task.name, item, with_texts=self._room >= 0))
            self._items += 1

    async def _leave_files(self, client: httpx.AsyncClient, base: str, result: dict[str, Any]) -> None:
        """Uploads the harness's output and its results files as files of the run. The run does not fail if this fails."""
        number = self._spec.attempt
        name = "output.txt" if number == 1 else f"output-a{number}.txt"
        await self._upload(client, f"{base}/artefacts/{name}", clean(shortened(result["output"], OUTPUT_CHARS)).encode())
        for path in sorted(self._marks)[:RESULT_FILES]:
            content = await self._content(path)
            if content is not None:
                safe = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in PurePosixPath(path).name)
                await self._upload(client, f"{base}/artefacts/{PREFIX}{safe[-80:]}", content)

    async def _content(self, path: str) -> bytes | None:
        pieces: list[bytes] = []
        whole = False
        async for message in self._ordered({"send": path, "most": RESULT_FILE_BYTES}):
            if "piece" in message:
                pieces.append(base64.b64decode(message["piece"]))
            whole = whole or "sent" in message
        return b"".join(pieces) if whole else None

    async def _upload(self, client: httpx.AsyncClient, url: str, content: bytes) -> None:
        try:
            answer = await client.put(url, content=content, timeout=UPLOAD_S)
            trouble = None if answer.is_success else f"status {answer.status_code}"
        except httpx.HTTPError as error:
            trouble = f"{type(error).__name__}: {error}"
        if trouble:
            self._log("harness.file_not_left", url=url, trouble=trouble)

    def _judge(self, result: dict[str, Any]) -> None:
        """Raises `RunFailed` unless the harness did its work."""
        if self._over.done():
            raise _failure(self._over.result())
        if result["exit_code"] not in self._task.exit_codes or result["trouble"]:
            raise RunFailed(FailureReason.HARNESS_FAILED, how_it_ended(result))
        if not self._reported:
            why = next(iter(self._trouble.values()), f"no file matches {', '.join(self._task.results.paths)}")
            raise RunFailed(FailureReason.HARNESS_FAILED, f"the harness ended without results that can be read: {why}")
        if self._trouble:
            raise RunFailed(FailureReason.HARNESS_FAILED, f"results cannot be read: {next(iter(self._trouble.values()))}")


def _failure(error: CallError) -> RunFailed:
    if isinstance(error, BudgetExhausted):
        return RunFailed(FailureReason.BUDGET_EXHAUSTED, str(error))
    if isinstance(error, PriceUnknown):
        return RunFailed(FailureReason.PRICE_UNKNOWN, str(error))
    return RunFailed(FailureReason.PROVIDER_ERROR, str(error))


def how_it_ended(result: dict[str, Any]) -> str:
    """In words, with the last lines of output."""
    if result["trouble"]:
        return str(result["trouble"])
    end = f"signal {result['signal']}" if result["signal"] is not None else f"exit code {result['exit_code']}"
    memory = "; it ran out of memory: choose a larger instance type" if result["out_of_memory"] else ""
    lines = [text.rstrip() for text in str(result["output"]).splitlines() if text.strip()][-LAST_LINES:]
    tail = "\n".join(lines)[-LAST_CHARS:]
    return f"the harness ended with {end}{memory}" + (f". Its last lines:\n{tail}" if tail else " and without output")


def item_result(benchmark: str, item: HarnessItem, *, with_texts: bool = True) -> ItemResult:
    """An item without a score does not count: the harness failed on it, not the model."""
    verdict = Outcome.PASSED if item.score is not None and item.score >= 1 else Outcome.WRONG_ANSWER
    outcome = Outcome.INFRA_ERROR if item.score is None else verdict
    return ItemResult(
        benchmark=benchmark,
        problem_id=item.id,
        sample_index=item.sample_index,
        outcome=outcome,
        score=item.score if item.score is not None and 0 < item.score < 1 else None,
        detail=item.reason,
        prompt=item.input if with_texts else "",
        answer=item.output if with_texts else "",
    )
