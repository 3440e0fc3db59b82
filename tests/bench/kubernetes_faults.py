"""Faults of a cluster at random moments, many times: whether everything held, and how long until work went on.

    .venv/bin/python -m tests.bench.kubernetes_faults [--repeats 20] [--seed 1] [--only FAULT] [--cluster N] [--into FILE]

Uses the cluster in KUBECONFIG, or starts two nodes with scripts/kubernetes-here. After each fault: the run completes, every
item has one result, no answer was bought twice, and neither pod nor secret is left. Prints a table for docs/kubernetes.md,
and with --into adds each repeat to a file as it happens, so that a series can be ended early and go on later.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.kubernetes.cluster import any_cluster
from tests.kubernetes.faults import FAULTS, Fault, once
from tests.kubernetes.scene import Scene, scene


@dataclass(frozen=True)
class Repeat:
    fault: str
    held: bool
    seconds: float | None = None
    attempts: int = 0
    trouble: str = ""


def repeat(on: Scene, fault: Fault, rng: random.Random) -> Repeat:
    try:
        struck, runs = once(on, fault, rng)
    except Exception as error:
        traceback.print_exc()
        return Repeat(fault.name, False, trouble=f"{type(error).__name__}: {error}"[:500])
    return Repeat(fault.name, True, struck.seconds, runs[0]["attempt"])


def series(fault: Fault, repeats: int, seed: int) -> Iterator[Repeat]:
    """As many repeats on one service. After a failure the next ones get a new service."""
    done = 0
    with any_cluster() as cluster:
        while done < repeats:
            with scene(cluster, **fault.settings) as on:
                while done < repeats:
                    outcome = repeat(on, fault, random.Random(f"{seed} {fault.name} {done}"))
                    done += 1
                    yield outcome
                    if not outcome.held:
                        print(on.service.log_tail(), flush=True)
                        break


def row(fault: Fault, outcomes: list[Repeat]) -> str:
    seconds = [outcome.seconds for outcome in outcomes if outcome.seconds is not None]
    times = f"{statistics.median(seconds):.1f} s | {max(seconds):.1f} s" if seconds else "- | -"
    held = sum(outcome.held for outcome in outcomes)
    used = [outcome.attempts for outcome in outcomes if outcome.held]
    if held < len(outcomes):
        lost = f"{len(outcomes) - held} repeats did not hold"
    elif max(used, default=1) == 1:
        lost = "nothing"
    else:
        lost = f"an attempt in {sum(number > 1 for number in used)} of {len(used)}; no item, no answer"
    return f"| {fault.name} | {len(outcomes)} | {held} | {times} | {fault.recovered} | {lost} |"


def table(outcomes: list[Repeat]) -> str:
    lines = [
        "| fault | repeats | survived | median | worst | recovery is measured | lost |",
        "|---|---|---|---|---|---|---|",
    ]
    for fault in FAULTS.values():
        own = [outcome for outcome in outcomes if outcome.fault == fault.name]
        if own:
            lines.append(row(fault, own))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=list(FAULTS), action="append")
    parser.add_argument("--cluster", type=int, help="which cluster of scripts/kubernetes-here")
    parser.add_argument("--into", type=Path)
    given = parser.parse_args()
    if given.cluster is not None:
        os.environ["BENCHYARD_KUBERNETES_CLUSTER"] = str(given.cluster)
    outcomes: list[Repeat] = []
    if given.into and given.into.exists():
        outcomes = [Repeat(**json.loads(line)) for line in given.into.read_text().splitlines()]
    for name in given.only or FAULTS:
        for outcome in series(FAULTS[name], given.repeats, given.seed):
            outcomes.append(outcome)
            print(outcome, flush=True)
            if given.into:
                with given.into.open("a") as file:
                    file.write(json.dumps(asdict(outcome)) + "\n")
    print(table(outcomes))


if __name__ == "__main__":
    main()
