"""Values that cross the boundary of the sandbox, as type-tagged JSON, and the trusted comparison.

A scalar is itself; everything else is a list whose first element is a tag. The trusted side only walks such a tree together
with the expected value: it never builds a set or dictionary from it (chosen hash collisions cost seconds), and never calls
anything that the program could have defined.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Scalar: TypeAlias = bool | int | float | str | None
Json: TypeAlias = "Scalar | Sequence[Json] | Mapping[str, Json]"
Tree: TypeAlias = "Scalar | list[Any]"

LIST, TUPLE, DICT, SET, BYTES, COMPLEX, BIG, OBJECT = "l", "t", "d", "s", "b", "c", "i", "o"
TAGS = frozenset((LIST, TUPLE, DICT, SET, BYTES, COMPLEX, BIG, OBJECT))

MAX_DEPTH = 400
SMALL_INT_DIGITS = 40


class BadValueError(ValueError):
    """The reply is not in this module's format."""


def _small_int(text: str) -> int:
    if len(text) > SMALL_INT_DIGITS:
        raise BadValueError("a long integer without its tag")
    return int(text)


def _no_object(pairs: object) -> object:
    raise BadValueError("a JSON object where only tagged lists may be")


_DECODER = json.JSONDecoder(parse_int=_small_int, object_pairs_hook=_no_object)


def parse(reply: bytes) -> Tree:
    """Decodes a reply into an inert tree, in time linear in its length."""
    try:
        tree: Tree = _DECODER.decode(reply.decode())
    except (ValueError, RecursionError) as error:
        raise BadValueError(f"the reply can't be read: {type(error).__name__}") from None
    return tree


def same(expected: Json, tree: Tree) -> bool:
    """Whether the returned value equals the expected JSON value, as Python's `==` would say (1 == 1.0 == True).

    The outermost tuple counts as a list, as in LiveCodeBench; inner ones do not.
    """
    if isinstance(tree, list) and tree and tree[0] == TUPLE:
        tree = [LIST, *tree[1:]]
    try:
        return _same(expected, tree, 0)
    except (RecursionError, OverflowError, ValueError):
        return False


def _same(expected: Json, tree: Tree, depth: int) -> bool:
    if depth > MAX_DEPTH:
        return False
    if isinstance(tree, list):
        return _same_container(expected, tree, depth)
    if expected is None or tree is None:
        return expected is None and tree is None
    if isinstance(expected, str) or isinstance(tree, str):
        return isinstance(expected, str) and isinstance(tree, str) and expected == tree
    if isinstance(expected, (bool, int, float)):
        return expected == tree
    return False


def _same_container(expected: Json, tree: list[Any], depth: int) -> bool:
    if not tree:
        return False
    tag, items = tree[0], tree[1:]
    if tag == BIG:
        return isinstance(expected, (bool, int, float)) and expected == _big(items)
    if isinstance(expected, Mapping):
        return tag == DICT and _same_mapping(expected, items, depth)
    if isinstance(expected, str) or not isinstance(expected, Sequence):
        return False
    if tag != LIST or len(items) != len(expected):
        return False
    return all(_same(one, other, depth + 1) for one, other in zip(expected, items, strict=True))


def _same_mapping(expected: Mapping[str, Json], items: list[Any], depth: int) -> bool:
    if len(items) != len(expected):
        return False
    left = dict(expected)  # built from the expected value; the reply is only used for lookups in it
    for pair in items:
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and pair[0] in left):
            return False
        if not _same(left.pop(pair[0]), pair[1], depth + 1):
            return False
    return not left


def _big(items: list[Any]) -> int:
    if len(items) != 1 or not isinstance(items[0], str):
        raise BadValueError("a malformed long integer")
    return int(items[0], 16)


def plain(tree: Tree, limit: int = 200) -> str:
    """Returns a short text of a tree for people; safe for any reply."""
    pieces: list[str] = []
    room = [limit]

    def put(text: str) -> None:
        if room[0] > 0:
            pieces.append(text[: room[0]])
            room[0] -= len(text)

    def walk(node: Tree, depth: int) -> None:
        if room[0] <= 0:
            return
        if not isinstance(node, list):
            put(repr(node[:limit] if isinstance(node, str) else node))
            return
        tag, items = (node[0], node[1:]) if node else ("?", [])
        brackets = {LIST: "[]", TUPLE: "()", DICT: "{}", SET: "{}"}.get(str(tag), "<>")
        put(brackets[0])
        if tag in (OBJECT, BYTES, BIG, COMPLEX):
            put(str(items[:1])[:80])
        elif depth < 20:
            for index, item in enumerate(items):
                if room[0] <= 0:
                    break
                if index:
                    put(", ")
                if tag == DICT and isinstance(item, list) and len(item) == 2:
                    walk(item[0], depth + 1)
                    put(": ")
                    walk(item[1], depth + 1)
                else:
                    walk(item, depth + 1)
        put(brackets[1])

    walk(tree, 0)
    return "".join(pieces)
