"""Carry out faults and write down what held.

    .venv/bin/python -m tests.bench.faults [--repeats N] [--seed S] [--database sqlite|postgresql|both] [--at-once K]
                                           [--out FILE [--resume]] [--for-s SECONDS] [FAULT ...]
    .venv/bin/python -m tests.bench.faults --list
    .venv/bin/python -m tests.bench.faults --table FILE ...

FAULT is a code (F9) or a whole name ("F9 engine hung"). The table stands in docs/operations.md.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from tests.bench.faults import results
from tests.bench.faults.carrying import Repeat, carry_out, together
from tests.bench.faults.fault import BOTH
from tests.bench.faults.registry import ALL, chosen
from tests.bench.faults.results import Result


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.faults", description=__doc__.splitlines()[0])
    parser.add_argument("faults", nargs="*", metavar="FAULT")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seed", type=int, default=22)
    parser.add_argument("--database", choices=[*BOTH, "both"], default="both")
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("build/faults.jsonl"))
    parser.add_argument("--resume", action="store_true", help="carry out only the repeats that are not in the file")
    parser.add_argument("--for-s", type=float, default=float("inf"), help="start no repeat after so many seconds")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--table", type=Path, metavar="FILE", nargs="+", help="print the table of files of results")
    return parser.parse_args()


def show(result: Result) -> None:
    seconds = f"{result.seconds:6.1f} s" if result.seconds is not None else "       –"
    words = "held" if result.survived else result.skipped or f"BROKEN {result.broken}"
    print(
        f"{time.strftime('%H:%M:%S')} {result.fault} on {result.database}, {result.repeat}: {seconds}  {words}", flush=True
    )


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # what was started is ended on the way out
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asked = arguments()
    if asked.list:
        for fault in ALL:
            print(f"{fault.key}  ({', '.join(fault.databases)})")
        return
    if asked.table:
        found = [each for path in asked.table for each in results.read(path)]
        print(results.conditions(found) + "\n")
        print(results.as_table(found, ALL))
        return
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    if not asked.resume:
        asked.out.unlink(missing_ok=True)

    until = time.monotonic() + asked.for_s

    def record(result: Result) -> None:
        results.append(asked.out, result)
        show(result)

    there = {(each.fault, each.database, each.repeat) for each in results.read(asked.out)}
    wanted = [
        Repeat(fault, database, number)
        for fault in chosen(asked.faults)
        for database in fault.databases
        if asked.database in (database, "both")
        for number in range(1, asked.repeats + 1)
        if (fault.key, database, number) not in there
    ]
    for group in together(wanted):
        if time.monotonic() < until:
            carry_out(group, seed=asked.seed, at_once=asked.at_once, record=record, until=until)
    print(results.as_table(results.read(asked.out), ALL))


if __name__ == "__main__":
    main()
