"""Compares a program with a reference solution on many inputs, by EvalPlus' rules. Standard library only.

This file's text is the test code of HumanEval+ and MBPP+: it runs in the judge's process, where `candidate` is the program
at the other end of a socket and the reference is a function of the same process. The runner never imports it for that.
"""

import copy
import json
import math
import signal
import time
from collections.abc import Callable
from typing import Any

SET_RESULTS = frozenset(
    (
        "similar_elements",
        "find_char_long",
        "common_in_nested_lists",
        "extract_singly",
        "larg_nnum",
        "intersection_array",
        "find_dissimilar",
        "Diff",
    )
)
"""MBPP functions whose result is unordered."""
FOUND_OR_NOT = frozenset({"check_str", "text_match_three", "text_starta_endb"})
"""MBPP functions that may return a match, or whether there is one."""
RTOL = 1e-7
FLOAT_ATOL = 1e-6


class TooSlow(BaseException):
    """One input took too long. Not an Exception, so that nothing can swallow it."""

    judge_tag = "too_slow"


class ReferenceFailed(BaseException):
    """The reference solution itself raised, which is the benchmark's fault."""

    judge_tag = "reference_failed"


def untagged(value: Any) -> Any:
    """Reverses `reference.tagged`."""
    if isinstance(value, list):
        return [untagged(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((tag, items),) = value.items()
    if tag == "t":
        return tuple(untagged(item) for item in items)
    if tag == "s":
        return {untagged(item) for item in items}
    if tag == "c":
        return complex(*items)
    return {untagged(key): untagged(item) for key, item in items}


def numbers(value: Any) -> list[complex] | None:
    """Returns all numbers of a nested list in order; None if it contains anything else."""
    if isinstance(value, (bool, int, float, complex)):
        return [value]
    if not isinstance(value, (list, tuple)):
        return None
    flat: list[complex] = []
    for item in value:
        inner = numbers(item)
        if inner is None:
            return None
        flat += inner
    return flat


def shape(value: Any) -> Any:
    return [shape(item) for item in value] if isinstance(value, (list, tuple)) else 0


def close(out: Any, expected: Any, atol: float) -> bool:
    if type(out) is not type(expected) or shape(out) != shape(expected):
        return False
    ours, theirs = numbers(out), numbers(expected)
    if ours is None or theirs is None:
        return False
    return all(a == b or abs(a - b) <= atol + RTOL * abs(b) for a, b in zip(ours, theirs, strict=True))


def all_floats(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(item, float) for item in value)
    return isinstance(value, float)


def pyramid_surface(edge: float, height: float) -> int:
    """Alternative reading of MBPP/581: the height is the pyramid's, not the slant height."""
    return round(edge * edge + 2 * edge * math.hypot(edge / 2, height))


def digit_distance(one: int, other: int) -> int:
    """Alternative reading of MBPP/558: digits are compared position by position."""
    a, b = str(one), str(other)
    width = max(len(a), len(b))
    return sum(abs(int(x) - int(y)) for x, y in zip(a.zfill(width), b.zfill(width), strict=True))


def accepted(entry: str, arguments: list[Any], out: Any, expected: Any, atol: float, mbpp: bool) -> bool:
    """Whether the program's result is right."""
    if not mbpp and entry == "find_zero":
        return bool(abs(sum(factor * out**power for power, factor in enumerate(arguments[0]))) <= atol)
    equal = bool(out == expected)
    if mbpp and entry == "are_equivalent":
        equal = True
    elif mbpp and entry == "sum_div":
        equal = equal or out == 0
    elif mbpp and entry == "surface_Area":
        equal = equal or abs(out - pyramid_surface(*arguments)) <= atol
    elif mbpp and entry == "digit_distance_nums":
        equal = equal or out == digit_distance(*arguments)
    elif mbpp and entry in SET_RESULTS:
        equal = set(out) == set(expected)
    elif mbpp and entry in FOUND_OR_NOT:
        truth = expected if isinstance(expected, bool) else expected is not None
        equal = truth == (out if isinstance(out, bool) else out is not None)
    if atol == 0 and all_floats(expected):
        atol = FLOAT_ATOL
    return equal or (atol != 0 and close(out, expected, atol))


def too_slow(*_: Any) -> None:
    raise TooSlow("one input took too long")


def compare(
    candidate: Callable[..., Any],
    reference: Callable[..., Any],
    inputs: str,
    entry: str,
    atol: float,
    mbpp: bool,
    at_least_s: float,
) -> None:
    """Calls both with every input; an assertion fails at the first difference.

    An input may take eight times as long as the reference needs, and at least `at_least_s`.
    """
    signal.signal(signal.SIGALRM, too_slow)
    for number, tagged in enumerate(json.loads(inputs)):
        arguments = untagged(tagged)
        started = time.monotonic()
        try:
            expected = reference(*copy.deepcopy(arguments))
        except Exception as error:
            raise ReferenceFailed(f"input {number}: {type(error).__name__}: {error}") from None
        signal.setitimer(signal.ITIMER_REAL, max(at_least_s, 8 * (time.monotonic() - started)))
        out = candidate(*copy.deepcopy(arguments))
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert accepted(entry, arguments, out, expected, atol, mbpp), f"input {number} gives another result"
