"""Measured curves with their exponents: does anything grow faster than its work?

    .venv/bin/python -m tests.bench.growth [CURVE ...] [--largest N] [--out build/growth]

CURVE is one or more of pages, dispatch, firing, streams, grading, downloads, orchestrators; without any, all of them. Sizes
are powers of ten up to N and to the curve's own end (a million results, 10,000 runs or schedules, 1,000 streams or tests).
Writes `growth.jsonl`, one line per series, and `growth-NAME.svg`. Costs are processor time of the service, which a busy
machine changes less than the clock.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import structlog

from tests.bench.growth import downloads, judging, orchestrators, pages, queue, streams
from tests.bench.growth.curve import Curve

CURVES: dict[str, Callable[[int], list[Curve]]] = {
    "pages": pages.measure,
    "dispatch": queue.measure_dispatch,
    "firing": queue.measure_firing,
    "streams": streams.measure,
    "grading": judging.measure,
    "downloads": downloads.measure,
    "orchestrators": orchestrators.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.growth")
    parser.add_argument("curves", nargs="*", metavar="CURVE", help=", ".join(CURVES))
    parser.add_argument("--largest", type=int, default=10**6)
    parser.add_argument("--out", type=Path, default=Path("build/growth"))
    options = parser.parse_args()
    if unknown := set(options.curves) - set(CURVES):
        parser.error(f"no such curve: {', '.join(sorted(unknown))}; there are {', '.join(CURVES)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # every `finally` is carried out
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.curves or CURVES:
        for curve in CURVES[name](options.largest):
            with (options.out / "growth.jsonl").open("a") as file:
                file.writelines(line + "\n" for line in curve.lines())
            if curve.exponents():
                print(f"{curve.draw(options.out)}: {curve.exponents()}, at the end {curve.last_exponents()}", flush=True)


if __name__ == "__main__":
    main()
