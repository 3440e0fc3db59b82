"""Pickled texts of every protocol are read; anything else is refused without being run."""

import contextlib
import os
import pickle
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.datasets.formats.published.pickled_text import ForeignPickle, pickled_text_pieces


def read_pickled_text(data: bytes, size: int = 7) -> str:
    """In small chunks, as a decompressor might hand it over."""
    return "".join(pickled_text_pieces(data[at : at + size] for at in range(0, len(data), size)))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("text", ["", "a", "naïve ☃ 𝄞", "line\nbreak\\u0041", "x" * 300, "y" * 70_000], ids=len)
def test_texts_come_back(protocol: int, text: str) -> None:
    assert read_pickled_text(pickle.dumps(text, protocol)) == text


class Evil:
    def __reduce__(self):
        return os.system, ("echo ran > /tmp/benchyard-evil",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "value",
    [Evil(), os.path.join, {"a": 1}, ["a"], 5, None, b"bytes", ("a",), bytearray(b"x")],
    ids=lambda v: type(v).__name__,
)
def test_everything_else_is_refused(protocol: int, value: object) -> None:
    with pytest.raises(ForeignPickle):
        read_pickled_text(pickle.dumps(value, protocol))
    assert not os.path.exists("/tmp/benchyard-evil")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x04",
        b"X\xff\xff\xff\x7fabc.",
        b"\x8d" + struct.pack("<Q", 2**60) + b"a.",
        b"\x8c",
        b"Vabc",
        b"\x8c\x01a",
        b"\x8c\x01a\x8c\x01b.",
        b"\x96" + struct.pack("<Q", 2**40) + b".",
        b"cos\nsystem\n(S'true'\ntR.",
        b"\x82\x01.",
        b"\xfe.",
    ],
    ids=["empty", "no stop", "long length", "huge length", "no length", "no line end", "no stop after text", "two texts",
         "bytearray bomb", "global", "extension registry", "unknown instruction"],
)  # fmt: skip
def test_broken_and_hostile_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ForeignPickle):
        read_pickled_text(data)


@given(st.binary(max_size=200))
def test_random_bytes_give_a_text_or_a_refusal(data: bytes) -> None:
    with contextlib.suppress(ForeignPickle):
        assert isinstance(read_pickled_text(data), str)
