"""Twenty runs against providers with all kinds of limits, in virtual time: how much of the provider's rate they get.

    .venv/bin/python -m tests.bench.limits [WORDS IN THE NAME ...]

The limiter and the retry policy are the real ones. From the second to the tenth minute: calls taken against what the
provider would take, calls refused, and the run with the fewest answers against the mean; mean and least of three seeds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace

from tests.unit.gateway.provider_storms import (
    AtOnce,
    Bucket,
    Rule,
    Sliding,
    Storm,
    Windows,
    always,
    exact,
    silent,
    watch,
    whole_seconds,
)

SINCE_S, UNTIL_S = 120.0, 600.0
LENGTHS = {"2-3 s": (2.0, 3.0), "30 s": (28.0, 32.0), "60-120 s": (60.0, 120.0)}
SEEDS = (1, 2, 3)


def cases() -> Iterator[tuple[str, Storm]]:
    for length, takes_s in LENGTHS.items():
        for rate in (0.5, 1.0, 5.0, 20.0):
            if rate * takes_s[1] > 1000:
                continue
            for says_name, says in (
                ("silent", silent), ("exact", exact), ("whole seconds", whole_seconds), ("always 10 s", always(10.0)),
            ):  # fmt: skip
                for saved_s in (1.0, 60.0):
                    name = f"bucket {saved_s:g} s, {says_name}, {rate:g}/s, {length}"
                    yield name, Storm(lambda rate=rate, saved_s=saved_s: Bucket(rate, saved_s), takes_s, rate, says)
            for says_name, says in (("silent", silent), ("whole seconds", whole_seconds)):
                yield (
                    f"windows of 60 s, {says_name}, {rate:g}/s, {length}",
                    Storm(lambda rate=rate: Windows(rate, 60.0), takes_s, rate, says),
                )
                yield (
                    f"sliding 60 s, {says_name}, {rate:g}/s, {length}",
                    Storm(lambda rate=rate: Sliding(rate, 60.0), takes_s, rate, says),
                )
                if says is whole_seconds:
                    yield (
                        f"windows of 60 s with headers, {rate:g}/s, {length}",
                        Storm(lambda rate=rate: Windows(rate, 60.0), takes_s, rate, says, headers=True),
                    )
                    yield (
                        f"bucket 60 s with headers, {rate:g}/s, {length}",
                        Storm(lambda rate=rate: Bucket(rate, 60.0), takes_s, rate, says, headers=True),
                    )
            plain = Storm(lambda rate=rate: Bucket(rate, 1.0), takes_s, rate)
            yield f"late word, {rate:g}/s, {length}", replace(plain, tells_at_once=False, says=whole_seconds)
            if rate >= 5:
                yield f"two orchestrators, {rate:g}/s, {length}", replace(plain, orchestrators=2)
                tokens = Storm(
                    lambda rate=rate: Bucket(rate * 1000, 60.0), takes_s, rate, whole_seconds, sizes=(200.0, 1800.0)
                )
                yield f"tokens per minute, {rate:g}/s, {length}", tokens
                if 2 * rate * takes_s[1] < 1000:  # the limiter has no more places
                    yield (
                        f"twice the rate after 3 min, {rate:g}/s, {length}",
                        replace(plain, change=_double, fair_rate=2 * rate),
                    )
            if rate <= 5:
                yield f"refused after 20 s, {rate:g}/s, {length}", replace(plain, refusal_s=20.0)
        for places in (4, 10, 60):
            rate = places / (sum(takes_s) / 2)
            for says_name, says in (("silent", silent), ("always 1 s", always(1.0))):
                name = f"{places} at once, {says_name}, {length}"
                yield name, Storm(lambda places=places: AtOnce(places), takes_s, rate, says)


def _double(rule: Rule, now: float) -> None:
    assert isinstance(rule, Bucket)
    if now >= 180 and rule.saved_s == 1.0:
        rule.per_s, rule.saved_s = 2 * rule.per_s, 1.0 + 1e-9


def main() -> None:
    words = sys.argv[1:]
    print("case                                               rate   least   refused   fewest   early   failed   real s")
    worst: list[float] = []
    for name, storm in cases():
        if not all(word in name for word in words):
            continue
        began = time.perf_counter()
        seen = [watch(replace(storm, seed=seed), UNTIL_S, SINCE_S) for seed in SEEDS]
        since_s = 360.0 if storm.change else SINCE_S
        shares = [each.rate(since_s, UNTIL_S) / storm.fair_rate for each in seen]
        worst.append(min(shares))
        refused = sum(each.refusals(since_s, UNTIL_S) for each in seen) / len(seen)
        fewest = min(each.least(storm.runs) for each in seen)
        print(
            f"{name:50} {sum(shares) / len(shares):5.0%} {min(shares):7.0%} {refused:9.1%} {fewest:8.2f} "
            f"{sum(each.early for each in seen):7} {sum(each.failed for each in seen):8} {time.perf_counter() - began:8.1f}",
            flush=True,
        )
    reached = sum(1 for share in worst if share >= 0.9)
    print(f"{reached} of {len(worst)} at 90 % and more with every seed; the least {min(worst):.0%}")


if __name__ == "__main__":
    main()
