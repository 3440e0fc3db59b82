"""Reads a pickle that holds one text, and nothing else.

LiveCodeBench packs its private tests as pickles of a string. The pickle machine can call anything that is importable,
so it is not used: this reads the few instructions that a pickled string consists of (all protocols) and refuses every
other, among them all that name a global. It never allocates more than the payload holds.
"""

from __future__ import annotations

import pickletools
import struct

_TEXT_BY_LENGTH = {0x8C: "<B", ord("X"): "<I", 0x8D: "<Q"}
_SKIP = {0x80: 1, 0x95: 8, 0x94: 0, ord("q"): 1, ord("r"): 4}
_PUT, _UNICODE, _STOP = ord("p"), ord("V"), ord(".")


class ForeignPickle(ValueError):
    """The pickle is more than a text."""


def read_pickled_text(data: bytes) -> str:
    """The text; `ForeignPickle` for everything else."""
    text: str | None = None
    at = 0
    while at < len(data):
        code = data[at]
        at += 1
        if code in _SKIP:
            at += _SKIP[code]
        elif code == _PUT:
            at = _end_of_line(data, at) + 1
        elif code == _STOP:
            if text is None:
                raise ForeignPickle("the pickle holds no text")
            return text
        elif text is not None:
            raise ForeignPickle(f"the pickle holds more than one text (instruction {_name(code)})")
        elif code in _TEXT_BY_LENGTH:
            head = struct.Struct(_TEXT_BY_LENGTH[code])
            if at + head.size > len(data):
                break
            (length,) = head.unpack_from(data, at)
            at += head.size + length
            if at > len(data):
                break
            text = _decoded(memoryview(data)[at - length : at], "utf-8", "surrogatepass")
        elif code == _UNICODE:
            end = _end_of_line(data, at)
            text = _decoded(memoryview(data)[at:end], "raw-unicode-escape", "strict")
            at = end + 1
        else:
            raise ForeignPickle(f"the pickle is not a plain text (instruction {_name(code)}); it was not run")
    raise ForeignPickle("the pickle is cut short")


def _decoded(data: memoryview, encoding: str, errors: str) -> str:
    try:
        return str(data, encoding, errors)
    except UnicodeDecodeError:
        raise ForeignPickle("the pickle's text is not in its encoding") from None


def _end_of_line(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    if end < 0:
        raise ForeignPickle("the pickle is cut short")
    return end


def _name(code: int) -> str:
    return next((known.name for known in pickletools.opcodes if known.code == chr(code)), f"0x{code:02x}")
