"""`python -m tests.bench.drift [SERIES] [NAME...]` prints the figures of docs/schedules.md, a line for each world."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from tests.bench.drift.looks import false_alarms, first_alarms, found_within
from tests.bench.drift.worlds import World

SERIES = 2000
SHORT = 10
"""The worlds that take long have as many series as this goes into the number."""

QUIET = {
    "no change": World(SERIES),
    "no change, 50 problems": World(SERIES, problems=50),
    "no change, 500 problems": World(SERIES // SHORT, problems=500),
    "no change, all problems equally hard": World(SERIES // SHORT, shape=(300, 200)),
    "no change, 50 problems, 4 samples each": World(SERIES, problems=50, samples=4),
    "no change, 2 % of results are trouble": World(SERIES // SHORT, errors=0.02),
    "no change, half of the answers repeated": World(SERIES // SHORT, stay=0.5),
    "no change, 9 of 10 answers repeated": World(SERIES // SHORT, stay=0.9),
}
DROP: dict[str, Any] = {"drop": 0.08, "seed": 1}
DROPPED = {
    "drop on day 30": World(SERIES, days=40, at=30, **DROP),
    "drop on day 180": World(SERIES, days=190, at=180, **DROP),
    "drop on day 30, all problems equally hard": World(SERIES, days=40, at=30, shape=(300, 200), **DROP),
    "drop on day 355, all problems equally hard": World(SERIES // SHORT, days=365, at=355, shape=(300, 200), **DROP),
    "drop on day 30, on a part of the problems": World(SERIES, days=40, at=30, subset=True, **DROP),
    "drop on day 30, over 5 days": World(SERIES, days=40, at=30, over=5, **DROP),
    "drop on day 30, 2 % of results are trouble": World(SERIES, days=40, at=30, errors=0.02, **DROP),
    "drop on day 30, 50 problems": World(SERIES, days=40, at=30, problems=50, **DROP),
    "drop on day 30, 50 problems, 4 samples each": World(SERIES, days=40, at=30, problems=50, samples=4, **DROP),
    "drop on day 30, 500 problems": World(SERIES // SHORT, days=40, at=30, problems=500, **DROP),
    "drop on day 40, half of the answers repeated": World(SERIES // SHORT, days=50, at=40, stay=0.5, **DROP),
}


def main(series: int, wanted: list[str]) -> None:
    for name, planned in {**QUIET, **DROPPED}.items():
        if wanted and name not in wanted:
            continue
        world = replace(planned, series=max(1, planned.series * series // SERIES))
        alarms, usual = first_alarms(world)
        if world.drop:
            found, beside = found_within(alarms[-1], world.at, 10), found_within(usual, world.at, 10)
            print(f"{name} ({world.series} series): found within 10 days {found:.1%}, unpaired {beside:.1%}", flush=True)
        else:
            found, beside = false_alarms(alarms), float((usual >= 0).mean())
            print(f"{name} ({world.series} series): false alarms {found:.2%}, unpaired {beside:.1%}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SERIES, sys.argv[2:])
