"""A warm runner: it imports everything, opens and tests its sandbox, drops privileges, and claims until it gets a run.

It serves exactly one run. It tests its sandbox before each claim, so that a runner whose sandbox broke while waiting never
gets a run: it exits, and the orchestrator starts another. Usage before the claim counts for the warm pool, not for the run.
"""

import asyncio
import time
from typing import Any

from pydantic import ValidationError

from runner.attempt import become_ordinary, carry_out
from runner.contract.run_spec import RunSpec
from runner.errors import EXIT_CRASHED, EXIT_REFUSED, BootRefused, ClaimRefused
from runner.llm.client import load_sdks
from runner.log import Log
from runner.process.boot import Boot, Link, announce, boot_facts, runner_id
from runner.process.claim import claim
from runner.process.final_reading import CountedSince, RunnerExit
from runner.process.kernel_usage import Reading, reader, since
from runner.reporting.usage_samples import UsageLog
from runner.sandbox.executor import Executor
from runner.sandbox.limits import MIB, Limits
from runner.sandbox.outcome import Ending

TRIAL = "print(int(input()) + 1)"
TRIAL_LIMITS = Limits(cpu_s=5, wall_s=30, memory_bytes=64 * MIB)


class SandboxUnwellError(Exception):
    """The sandbox cannot run a one-line program."""


async def stand_ready(boot: Boot, log: Log) -> RunnerExit:
    """Opens everything, claims a run and carries it out."""
    try:
        slots, uid_base = (boot.stand_ready or {})["sandbox_slots"], (boot.stand_ready or {})["sandbox_uid_base"]
    except KeyError as missing:
        raise BootRefused(f"stand_ready lacks {missing}") from None
    loop = asyncio.get_running_loop()
    async with Executor.open(slots=slots, uid_base=uid_base) as executor:
        await asyncio.to_thread(load_sdks)
        become_ordinary(log)
        link, facts = Link(boot.orchestrator_url), boot_facts(boot)
        read, until_now = reader(boot.engine), list[Reading | None]([None])

        def try_sandbox() -> dict[str, Any]:
            asyncio.run_coroutine_threadsafe(_try(executor), loop).result()
            until_now[0] = usage = read()  # before the claim, because afterwards every millisecond counts
            return {} if usage is None else {"idle": {"cpu_s": usage.cpu_s, "memory_bytes": usage.memory_bytes}}

        def claim_and_announce() -> tuple[dict[str, Any], float, int]:
            raw = claim(link, boot, runner_id(), log, before=try_sandbox)
            answered = time.monotonic()
            return raw, answered, announce(link, raw["run_id"], raw["attempt"], raw["run_token"], facts)

        try:
            raw, answered, acked = await asyncio.to_thread(claim_and_announce)
        except ClaimRefused as refused:
            log("runner.refused", why=str(refused))
            return RunnerExit(EXIT_REFUSED)
        except SandboxUnwellError as error:
            log("runner.unwell", why=str(error))
            return RunnerExit(EXIT_CRASHED)
        link.close()
        log = log.bind(run_id=raw["run_id"], attempt=raw["attempt"])
        log("runner.claimed", acked=acked)
        try:
            spec = RunSpec.model_validate(raw)
        except ValidationError as error:
            log("runner.refused", why=f"the run cannot be understood: {error}")
            return RunnerExit(EXIT_REFUSED)
        before = until_now[0]
        held = [] if before is None else [(0.0, Reading(0.0, before.memory_bytes))]
        usage = UsageLog(since(read, before), age_s=time.monotonic() - answered, early=held)
        code = await carry_out(spec, boot.orchestrator_url, log, facts, bool(acked), executor, usage=usage)
        if before is None or boot.engine == "process":
            return RunnerExit(code)
        return RunnerExit(code, CountedSince.seconds_ago(usage.age_s, before.cpu_s))


async def _try(executor: Executor) -> None:
    (execution,) = await executor.run_stdin(TRIAL, [b"41\n"], TRIAL_LIMITS, lambda _, __: True)
    if execution.ending is not Ending.finished or execution.stdout.strip() != b"42":
        raise SandboxUnwellError(f"a program of one line ended as {execution.ending}: {execution.stderr_tail!r}")
