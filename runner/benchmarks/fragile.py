"""Which tests came so close to their time limit that another moment could have judged them otherwise. Pure.

Such a test is judged again alone; if that gives another verdict, the item is marked as fragile. The first verdict stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from runner.contract import Outcome, TestResult

SHARE = 0.7
AT_MOST = 3


def close_to_limit(tests: Sequence[TestResult], cpu_s: float) -> list[int]:
    """Places of the tests to judge again: the slowest that passed with more than 70 % of the limit, at most three.

    A test that ran out of time was already repeated alone, except the first of all, which had nothing before it.
    """
    close = [
        place for place, test in enumerate(tests) if test.outcome is Outcome.PASSED and test.usage.cpu_s > SHARE * cpu_s
    ]
    slowest = sorted(close, key=lambda place: -tests[place].usage.cpu_s)[:AT_MOST]
    first = [0] if tests and tests[0].outcome is Outcome.TIME_LIMIT else []
    return first + slowest


def flips(before: Outcome, again: Outcome) -> bool:
    """Did the verdict change? A failure of ours says nothing."""
    return again is not Outcome.INFRA_ERROR and (before is Outcome.PASSED) != (again is Outcome.PASSED)
