"""Reads a pickle that holds one string and nothing else.

LiveCodeBench stores its private tests as pickled strings. The pickle machine can call anything importable, so it is not
used: this module interprets the few instructions of a pickled string (in all protocols) and rejects all others, including
every one that names a global. It holds one chunk at a time.
"""

from __future__ import annotations

import codecs
import pickletools
import struct
from collections.abc import Iterable, Iterator

_TEXT_BY_LENGTH = {0x8C: "<B", ord("X"): "<I", 0x8D: "<Q"}
_SKIP = {0x80: 1, 0x95: 8, 0x94: 0, ord("q"): 1, ord("r"): 4}
_PUT, _UNICODE, _STOP = ord("p"), ord("V"), ord(".")


class ForeignPickle(ValueError):
    """The pickle holds more than a string."""


def pickled_text_pieces(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yields the text of a chunked pickle piece by piece; raises `ForeignPickle` for anything else."""
    feed = _Feed(iter(chunks))
    found = False
    while (code := feed.take(1)[0]) != _STOP:
        if code in _SKIP:
            feed.take(_SKIP[code])
        elif code == _PUT:
            feed.line()
        elif found:
            raise ForeignPickle(f"the pickle holds more than one text (instruction {_name(code)})")
        elif code in _TEXT_BY_LENGTH:
            head = struct.Struct(_TEXT_BY_LENGTH[code])
            yield from _decoded(feed.some(head.unpack(feed.take(head.size))[0]), "utf-8", "surrogatepass")
            found = True
        elif code == _UNICODE:
            yield from _decoded(iter([feed.line()]), "raw-unicode-escape", "strict")
            found = True
        else:
            raise ForeignPickle(f"the pickle is not a plain text (instruction {_name(code)}); it was not run")
    if not found:
        raise ForeignPickle("the pickle holds no text")


class _Feed:
    """Reads the requested number of bytes from chunks of any size."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._held = b""

    def take(self, size: int) -> bytes:
        """Exactly `size` bytes; intended for small sizes."""
        return b"".join(self.some(size))

    def some(self, size: int) -> Iterator[bytes]:
        """`size` bytes in total, in pieces."""
        while size:
            if not self._held:
                self._more()
            piece, self._held = self._held[:size], self._held[size:]
            size -= len(piece)
            yield piece

    def line(self) -> bytes:
        """The bytes up to the next line feed, which is consumed too."""
        parts = []
        while b"\n" not in self._held:
            parts.append(self._held)
            self._more()
        last, _, self._held = self._held.partition(b"\n")
        return b"".join([*parts, last])

    def _more(self) -> None:
        self._held = next(self._chunks, b"")
        while not self._held:
            try:
                self._held = next(self._chunks)
            except StopIteration:
                raise ForeignPickle("the pickle is cut short") from None


def _decoded(pieces: Iterator[bytes], encoding: str, errors: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    try:
        for piece in pieces:
            yield decoder.decode(piece)
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise ForeignPickle("the pickle's text is not in its encoding") from None


def _name(code: int) -> str:
    return next((known.name for known in pickletools.opcodes if known.code == chr(code)), f"0x{code:02x}")
