"""`python -m tests.bench.drift.power [SERIES]`: is a drop that is said to be detectable found as often as is said?"""

from __future__ import annotations

import sys

from orchestrator.schedules.drift.power import DetectionPower, detectable_drop
from tests.bench.drift.looks import first_alarms, found_within
from tests.bench.drift.worlds import World

MIXES = {"very unequal": (0.6, 0.4), "middling": (3.0, 2.0)}


def main(series: int) -> None:
    for problems in (50, 100, 200, 300):
        for name, (a, b) in MIXES.items():
            drop = detectable_drop(DetectionPower(problems, spread=a * b / ((a + b) * (a + b + 1))))
            found = []
            for share in (1.0, 0.5):
                world = World(series, problems=problems, days=40, drop=share * drop, at=30, shape=(a, b), seed=7)
                found.append(found_within(first_alarms(world)[0][-1], 30, 10))
            said = f"{problems} problems, {name}: {100 * drop:.1f} points"
            print(
                f"{said} found in {found[0]:.0%}, half of it in {found[1]:.0%}",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
