"""Makes a zygote's objects cheap to share: their reference counts are never written again.

A child's cost is almost proportional to the memory pages that it writes, and even looking at an object writes its reference
count. Python 3.12 and later do not change the counts of immortal objects, so every object that exists before the fork is
made immortal; it would outlive every child anyway.
"""

import ctypes
import gc
import sys
import types
from collections.abc import Iterable
from typing import Any

_PARTS_OF_CODE = ("co_consts", "co_names", "co_filename", "co_name", "co_qualname", "co_linetable", "co_exceptiontable")


def make_immortal() -> int:
    """Makes every object that the garbage collector knows immortal, and what these refer to; returns how many objects.

    Returns 0 if the interpreter writes every count (before 3.12) or counts differently (free-threaded builds).
    """
    if sys.version_info < (3, 12) or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return 0
    there = _everything()
    immortal = ctypes.c_uint32.from_address(id(None)).value
    for address in there:
        ctypes.c_uint32.from_address(address).value = immortal
    return len(there)


def _everything() -> dict[int, Any]:
    """Returns every object by its address."""
    new: list[Any] = gc.get_objects()
    objects = {id(one): one for one in new}
    while new:
        new = [objects.setdefault(id(one), one) for one in _parts(new) if id(one) not in objects]
    return objects


def _parts(objects: list[Any]) -> Iterable[Any]:
    yield from gc.get_referents(*objects)
    for one in objects:
        if isinstance(one, types.CodeType):  # the collector does not look into it
            yield from (getattr(one, name) for name in _PARTS_OF_CODE)
