"""Converts Python values to the type-tagged trees of `runner.sandbox.protocol.values` and back, inside the sandbox.

The sender chooses the tag by the real type of a value, never by asking the value. Anything but plain data is sent as an
opaque object that equals nothing. Decoding builds sets and dictionaries, so it is only for disposable processes.
"""

from collections.abc import Callable
from typing import Any

from runner.sandbox.protocol.values import BIG, BYTES, COMPLEX, DICT, LIST, OBJECT, SET, TUPLE, Tree

MAX_DEPTH = 400
SMALL = 1 << 63


def refuse(value: object) -> Tree:
    """The default for values that are not plain data: sends only the name of the type."""
    return [OBJECT, type(value).__name__]


def encode(value: Any, other: Callable[[Any], Tree] = refuse, depth: int = 0) -> Tree:
    """Encodes plain data; `other` encodes the rest."""
    if depth > MAX_DEPTH:
        raise ValueError("the value is nested too deeply")
    kind = type(value)
    if value is None or kind is bool or kind is str or kind is float:
        return value  # type: ignore[no-any-return]
    if kind is int:
        return value if -SMALL < value < SMALL else [BIG, hex(value)]
    if kind is list or kind is tuple:
        tag = LIST if kind is list else TUPLE
        return [tag, *[encode(item, other, depth + 1) for item in value]]
    if kind is dict:
        return [DICT, *[[encode(k, other, depth + 1), encode(v, other, depth + 1)] for k, v in value.items()]]
    if kind is set or kind is frozenset:
        return [SET, *[encode(item, other, depth + 1) for item in value]]
    if kind is bytes or kind is bytearray:
        return [BYTES, value.hex()]
    if kind is complex:
        return [COMPLEX, value.real, value.imag]
    return _encode_subclass(value, other, depth)


def _encode_subclass(value: Any, other: Callable[[Any], Tree], depth: int) -> Tree:
    """Encodes a subclass as its base class: a method that the program has overridden is never called."""
    if isinstance(value, int):
        return encode(int.__index__(value), other, depth)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, list):
        return encode(list(list.__iter__(value)), other, depth)
    if isinstance(value, tuple):
        return encode(tuple(tuple.__iter__(value)), other, depth)
    if isinstance(value, dict):
        return encode(dict(dict.items(value)), other, depth)
    if isinstance(value, set):
        return encode(set(set.__iter__(value)), other, depth)
    if isinstance(value, frozenset):
        return encode(frozenset(frozenset.__iter__(value)), other, depth)
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return encode(value.tolist(), other, depth + 1)
    return other(value)


def decode(tree: Any, opaque: Callable[[list[Any]], Any]) -> Any:
    """Rebuilds a value; `opaque` converts the items after an object tag."""
    if not isinstance(tree, list):
        return tree
    tag, items = tree[0], tree[1:]
    if tag == LIST:
        return [decode(item, opaque) for item in items]
    if tag == TUPLE:
        return tuple([decode(item, opaque) for item in items])
    if tag == DICT:
        return {decode(key, opaque): decode(item, opaque) for key, item in items}
    if tag == SET:
        return _set_in_order([decode(item, opaque) for item in items])
    if tag == BYTES:
        return bytes.fromhex(items[0])
    if tag == COMPLEX:
        return complex(float(items[0]), float(items[1]))
    if tag == BIG:
        return int(items[0], 16)
    if tag == OBJECT:
        return opaque(items)
    raise ValueError(f"unknown tag {tag!r}")


def _set_in_order(items: list[Any]) -> set[Any]:
    """Builds a set that iterates in the sender's order if possible, because some honest programs and tests depend on it."""
    grown = set(items)
    if list(grown) == items:
        return grown
    copied = set(frozenset(grown))  # as a literal is made: with a smaller table
    return copied if list(copied) == items else grown
