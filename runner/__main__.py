"""`python -m runner`: the program in the container. It reads its boot configuration, claims a run and carries it out. A
warm runner opens everything before it claims (`runner.standby`).

The claim and the first event are sent before anything large is imported; the imports run in a thread while the orchestrator
answers. The process exits immediately when it is done (`runner.process.final_reading`), without waiting for threads.
"""

import os
import signal
import sys
import threading
from typing import Any

from runner.errors import EXIT_CRASHED, EXIT_REFUSED, EXIT_TERMINATED, BootRefused, ClaimRefused
from runner.log import Log
from runner.process.boot import Boot, Link, announce, boot_facts, hide_memory, read_boot, runner_id
from runner.process.claim import claim
from runner.process.final_reading import CountedSince, RunnerExit, end

MAX_DIGITS = 50_000
"""Some benchmark tests contain numbers with many digits."""


def main() -> RunnerExit:
    log = Log()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(EXIT_TERMINATED))
    try:
        boot = read_boot()
        if boot.stand_ready is not None:
            return _stand_ready(boot, log)
        warming = threading.Thread(target=_warm_up, daemon=True)
        warming.start()
        link = Link(boot.orchestrator_url)
        raw = claim(link, boot, runner_id(), log)
    except (BootRefused, ClaimRefused) as refused:
        log("runner.refused", why=str(refused))
        return RunnerExit(EXIT_REFUSED)
    log = log.bind(run_id=raw["run_id"], attempt=raw["attempt"])
    facts = boot_facts(boot)
    acked = announce(link, raw["run_id"], raw["attempt"], raw["run_token"], facts)
    link.close()
    log("runner.claimed", acked=acked)
    if raw.get("command") or raw.get("harness"):
        warming.join()  # the processes of a command or harness are forked, so no other thread may run
    return _carry_out(raw, boot.orchestrator_url, log, facts, bool(acked))


def _carry_out(raw: dict[str, Any], url: str, log: Log, facts: dict[str, Any], acked: bool) -> RunnerExit:
    from runner.process.kernel_usage import EarlyUsage, process_age_s, reader

    read = reader(str(facts.get("engine", "")))
    early = EarlyUsage(read, process_age_s)
    import asyncio

    from pydantic import ValidationError

    from runner.attempt import carry_out
    from runner.commands.measuring_process import open_measuring_process
    from runner.contract.run_spec import RunSpec
    from runner.harness.processes import open_harness
    from runner.reporting.usage_samples import UsageLog

    try:
        spec = RunSpec.model_validate(raw)
    except ValidationError as error:
        log("runner.refused", why=f"the run is invalid: {error}")
        return RunnerExit(EXIT_REFUSED)
    sys.set_int_max_str_digits(MAX_DIGITS)
    usage = UsageLog(read, age_s=process_age_s(), early=early.stop())
    engine = str(facts.get("engine", ""))
    beside = open_measuring_process(spec, engine) or open_harness(spec, engine)
    try:
        # not asyncio.run, which would wait at its end for a thread that may still be importing an SDK
        work = carry_out(spec, url, log, facts, acked, beside=beside, usage=usage)
        code = asyncio.new_event_loop().run_until_complete(work)
    except Exception as error:
        log("runner.crashed", trouble=f"{type(error).__name__}: {error}")
        code = EXIT_CRASHED
    alone = engine != "process" and spec.command is None and spec.harness is None  # in a container of our own image
    return RunnerExit(code, CountedSince.seconds_ago(usage.age_s) if alone else None)


def _stand_ready(boot: Boot, log: Log) -> RunnerExit:
    import asyncio

    hide_memory()
    from runner.standby import stand_ready

    sys.set_int_max_str_digits(MAX_DIGITS)
    return asyncio.new_event_loop().run_until_complete(stand_ready(boot, log))


def _warm_up() -> None:
    hide_memory()
    import runner.attempt  # noqa: F401


if __name__ == "__main__":
    end(main())
