"""EvalPlus' rules of comparison, by table."""

from typing import Any

import pytest

from runner.grading.reference import tagged
from runner.grading.reference_check import accepted, untagged

CASES: list[tuple[str, str, list[Any], Any, Any, float, bool, bool]] = [
    ("equal", "f", [], [1, 2], [1, 2], 0, False, True),
    ("tuple is no list", "f", [], (1, 2), [1, 2], 0, False, False),
    ("int equals float", "f", [], 1, 1.0, 0, False, True),
    ("floats within 1e-6", "f", [], 0.1 + 0.2, 0.3, 0, False, True),
    ("floats apart", "f", [], 0.31, 0.3, 0, False, False),
    ("list of floats", "f", [], [0.1 + 0.2, 1.0], [0.3, 1.0], 0, False, True),
    ("another length", "f", [], [0.3], [0.3, 1.0], 0, False, False),
    ("mixed list has no tolerance", "f", [], [0.1 + 0.2, "a"], [0.3, "a"], 0, False, False),
    ("given tolerance", "f", [], 1.00001, 1.0, 1e-4, False, True),
    ("tolerance needs the same type", "f", [], 1, 1.00001, 1e-4, False, False),
    ("relative tolerance", "f", [], 1e12 + 1e4, 1e12, 0, False, True),
    ("nan is not equal", "f", [], float("nan"), float("nan"), 0, False, False),
    ("infinity is", "f", [], float("inf"), float("inf"), 0, False, True),
    ("root of a polynomial", "find_zero", [[-4.0, 1.0]], 4.00000001, 123.0, 1e-4, False, True),
    ("no root", "find_zero", [[-4.0, 1.0]], 5.0, 5.0, 1e-4, False, False),
    ("order does not matter", "Diff", [], [1, 2], [2, 1], 0, True, True),
    ("but in HumanEval it does", "Diff", [], [1, 2], [2, 1], 0, False, False),
    ("match or bool", "check_str", [], "m", True, 0, True, True),
    ("no match", "check_str", [], None, False, 0, True, True),
    ("match where there is none", "check_str", [], "m", False, 0, True, False),
    ("zero is right too", "sum_div", [4], 0, 3, 0, True, True),
    ("anything goes", "are_equivalent", [1, 2], False, True, 0, True, True),
    ("another reading of 558", "digit_distance_nums", [123, 256], 7, 6, 0, True, True),
    ("another reading of 581", "surface_Area", [3, 4], 35, 33, 0, True, True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "arguments", "out", "expected", "atol", "mbpp", "right"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_rules(entry: str, arguments: list[Any], out: Any, expected: Any, atol: float, mbpp: bool, right: bool) -> None:
    assert accepted(entry, arguments, out, expected, atol, mbpp) is right


@pytest.mark.parametrize("value", [[1, (2, {3}), {"a": (1,), 5: None}], 1 + 2j, set(), {}, [[], ()], "t"], ids=repr)
def test_values_keep_their_types_on_the_way(value: Any) -> None:
    assert repr(untagged(tagged(value))) == repr(value)
