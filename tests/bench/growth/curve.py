"""A measured curve: series of points, the exponent of each, and how both are written."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.plots import figure
from tests.bench.trends import exponent

Point = tuple[float, float]


@dataclass
class Curve:
    """Each point is (size, cost). `work`: the cost is of all that the size says, so an exponent of 1 is proportional;
    otherwise it is of one thing among so many, and should not depend on them."""

    name: str
    title: str
    x_title: str
    y_title: str
    work: bool
    series: dict[str, list[Point]] = field(default_factory=dict)
    clock: dict[str, list[Point]] = field(default_factory=dict)
    """The same by the wall clock, in milliseconds; on a busy machine it says little."""

    def add(self, series: str, x: float, y: float, clock_ms: float | None = None) -> None:
        self.series.setdefault(series, []).append((x, y))
        if clock_ms is not None:
            self.clock.setdefault(series, []).append((x, clock_ms))
        print(f"  {self.name:14} {x:>9g}  {series:34} {y:10.4g}  {self.y_title}", flush=True)

    def exponents(self) -> dict[str, float]:
        return {name: round(exponent(points), 2) for name, points in self.series.items() if len(points) > 1}

    def last_exponents(self) -> dict[str, float]:
        """Of the two largest sizes: what a fixed part hides in the whole curve is seen there."""
        return {name: round(exponent(points[-2:]), 2) for name, points in self.series.items() if len(points) > 1}

    def lines(self) -> list[str]:
        exponents, last = self.exponents(), self.last_exponents()
        return [
            json.dumps(
                {
                    "curve": self.name, "series": name, "x": self.x_title, "y": self.y_title, "points": points,
                    "exponent": exponents.get(name), "exponent_at_the_end": last.get(name), "work": self.work,
                    "clock_ms": self.clock.get(name), "machine": machine(), "load": round(os.getloadavg()[0], 1),
                }
            )
            for name, points in self.series.items()
        ]  # fmt: skip

    def draw(self, folder: Path) -> Path:
        exponents = self.exponents()
        named = {f"{name} ({exponents[name]:+.2f})": self.series[name] for name in exponents}
        path = folder / f"growth-{self.name}.svg"
        path.write_text(figure(self.title, named, x_title=self.x_title, y_title=self.y_title, logarithmic=True))
        return path


def machine() -> str:
    return (
        f"{os.cpu_count()} cores, {platform.system()} {platform.release().split('-')[0]}, Python {platform.python_version()}"
    )


def sizes(smallest: int, largest: int, most: int) -> list[int]:
    """Powers of ten up to the smaller of two bounds."""
    found, size = [], smallest
    while size <= min(largest, most):
        found.append(size)
        size *= 10
    return found


def cpu_s(pid: int) -> float:
    """Processor time of a process, to the nanosecond."""
    return time.clock_gettime((~pid << 3) | 2)


@dataclass
class Cost:
    cpu_ms: float = 0.0
    clock_ms: float = 0.0


@contextmanager
def measured(pid: int | None = None) -> Iterator[Cost]:
    """What the block costs this process or another one."""
    cost = Cost()
    pid = pid or os.getpid()
    used, began = cpu_s(pid), time.monotonic()
    yield cost
    cost.cpu_ms, cost.clock_ms = 1000 * (cpu_s(pid) - used), 1000 * (time.monotonic() - began)


def cheapest(rounds: int, work: Callable[[], object], pid: int | None = None) -> Cost:
    """The least of several rounds: what others do on the machine only adds."""
    costs = []
    for _ in range(rounds):
        with measured(pid) as cost:
            work()
        costs.append(cost)
    return min(costs, key=lambda cost: cost.cpu_ms)
