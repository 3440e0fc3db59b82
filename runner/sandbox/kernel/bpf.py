"""A small assembler for the kernel's filter language: labels in, instructions out. It contains no policy."""

import struct
from dataclasses import dataclass, field

ALLOW = 0x7FFF0000
KILL_PROCESS = 0x80000000
ASK = 0x7FC00000
"""Leaves the decision to the process that holds the listener."""

_LOAD, _AND, _RETURN, _JUMP = 0x20, 0x54, 0x06, 0x05
EQUAL, GREATER, AT_LEAST, ANY_BIT = 0x15, 0x25, 0x35, 0x45

NUMBER, ARCHITECTURE = 0, 4
FAR = 255


def refuse(errno: int) -> int:
    """Returns the filter result "fail with this errno"."""
    return 0x00050000 | errno


def low(argument: int) -> int:
    """Returns the offset of the lower half of a system call argument (little-endian)."""
    return 16 + 8 * argument


def high(argument: int) -> int:
    """Returns the offset of the upper half."""
    return 20 + 8 * argument


@dataclass
class Assembler:
    """Collects instructions; a jump target of None means "the next instruction"."""

    _lines: list[tuple[int, int, str | None, str | None]] = field(default_factory=list)
    _labels: dict[str, int] = field(default_factory=dict)
    _made: int = 0

    def new_label(self) -> str:
        """Returns a unique label."""
        self._made += 1
        return f"L{self._made}"

    def label(self, name: str) -> None:
        """Defines the label `name` here."""
        self._labels[name] = len(self._lines)

    def load(self, offset: int) -> None:
        """Loads a 32-bit word of the system call data."""
        self._lines.append((_LOAD, offset, None, None))

    def mask(self, bits: int) -> None:
        """Keeps only these bits of the loaded word."""
        self._lines.append((_AND, bits, None, None))

    def answer(self, value: int) -> None:
        """Ends the filter with this result."""
        self._lines.append((_RETURN, value, None, None))

    def jump(self, target: str) -> None:
        """Jumps to a label at any distance."""
        self._lines.append((_JUMP, 0, target, None))

    def test(self, operation: int, value: int, yes: str | None, no: str | None) -> None:
        """Compares the loaded word and branches, at most 255 instructions forward."""
        self._lines.append((operation, value, yes, no))

    def assemble(self) -> bytes:
        """Returns the finished program."""
        out = bytearray()
        for at, (code, value, yes, no) in enumerate(self._lines):
            if code == _JUMP:
                assert yes is not None
                out += struct.pack("<HBBI", code, 0, 0, self._distance(at, yes))
                continue
            steps = self._distance(at, yes), self._distance(at, no)
            if max(steps) > FAR:
                raise ValueError(f"branch from {at} is too far")
            out += struct.pack("<HBBI", code, *steps, value & 0xFFFFFFFF)
        return bytes(out)

    def _distance(self, at: int, target: str | None) -> int:
        return 0 if target is None else self._labels[target] - at - 1
