"""The trusted comparison, and replies that want to hurt whoever reads them."""

import json
import time
from typing import Any

import pytest

from runner.sandbox.inside.encoding import decode, encode
from runner.sandbox.protocol.values import BadValueError, parse, plain, same


class Equal:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class EqualList(list[int]):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("expected", "returned", "verdict"),
    [
        (1, 1, True),
        (1, 1.0, True),
        (1, True, True),
        (0, False, True),
        (1, 2, False),
        (1, "1", False),
        (None, None, True),
        (None, 0, False),
        (0, None, False),
        ("a", "a", True),
        ("a", ["a"], False),
        ([1, 2], [1, 2], True),
        ([1, 2], (1, 2), True),
        ([[1], [2]], [(1,), (2,)], False),
        ([1, 2], [2, 1], False),
        ([1, 2], [1, 2, 3], False),
        ([1, 2], {1, 2}, False),
        ([], [], True),
        ([], (), True),
        ([], None, False),
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"1": 1}, {1: 1}, False),
        ({}, [], False),
        (10**30, 10**30, True),
        (10**30, 10**30 + 1, False),
        (0.3, 0.1 + 0.2, False),
        (1e308, float("inf"), False),
        (0, float("nan"), False),
        (1, Equal(), False),
        ([1], EqualList([2]), False),
        ([2], EqualList([2]), True),
        ([1], [Equal()], False),
        ("x", b"x", False),
        (True, object(), False),
    ],
)
def test_same(expected: Any, returned: Any, verdict: bool) -> None:
    tree = parse(json.dumps(encode(returned)).encode())
    assert same(expected, tree) is verdict


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"{",
        b'{"a": 1}',
        b'["v", {"a": 1}]',
        b"[" * 100_000 + b"]" * 100_000,
        b"9" * 100,
        b"[1, 2",
        b"\xff\xfe",
        b"nope",
    ],
    ids=range(9),
)
def test_replies_that_are_no_values(reply: bytes) -> None:
    with pytest.raises(BadValueError):
        parse(reply)


@pytest.mark.parametrize(
    "tree",
    [
        [],
        ["l"],
        [None],
        ["d", 1],
        ["d", [1]],
        ["d", ["a", 1], ["a", 1]],
        ["i"],
        ["i", "zz"],
        ["i", 5],
        ["s", 1],
        ["o", "x"],
        [["l"], 1],
        ["?", 1],
    ],
    ids=range(13),
)
def test_malformed_trees_equal_nothing(tree: list[Any]) -> None:
    for expected in (1, [1], {"a": 1}, {"a": 1, "b": 1}, "x", None, [1, 2]):
        assert not same(expected, tree)
    assert isinstance(plain(tree), str)


def test_hostile_replies_cost_the_runner_little() -> None:
    collisions = [["s", *[["i", hex(i * (2**61 - 1))] for i in range(20_000)]], ["l", *range(20_000)]]
    digits = ["l", *[["i", "0x" + "f" * 40_000]] * 10]
    for tree in (*collisions, digits):
        reply = json.dumps(tree).encode()
        started = time.process_time()
        same(list(range(20_000)), parse(reply))
        plain(parse(reply))
        assert time.process_time() - started < 1.0


@pytest.mark.parametrize(
    "value",
    [None, True, 7, -(10**40), 1.5, "ü", [1, [2]], (1, (2,)), {"a": [1]}, {1: 2}, {1, 2}, frozenset([1]), b"x", 2j],
    ids=repr,
)
def test_values_survive_the_journey(value: Any) -> None:
    back = decode(json.loads(json.dumps(encode(value))), lambda items: items)
    assert back == value


def test_sets_keep_their_order() -> None:
    for value in ({12, 13, 14, 15, 16}, {x for x in (12, 13, 14, 15, 16)}, set(range(40))):  # noqa: C416
        assert list(decode(encode(value), lambda items: items)) == list(value)
