"""All faults, in order."""

from __future__ import annotations

from tests.bench.faults import containers, crashes
from tests.bench.faults.fault import Fault

ALL: tuple[Fault, ...] = tuple(
    sorted(
        [
            *containers.FAULTS,
            *crashes.FAULTS,
        ],
        key=lambda fault: int(fault.code[1:]),
    )
)


def chosen(words: list[str]) -> list[Fault]:
    """By code ("F9") or whole key ("F9 engine killed -9")."""
    if unknown := [word for word in words if not any(word in (fault.code, fault.key) for fault in ALL)]:
        raise SystemExit(f"no such fault: {', '.join(unknown)}; --list names them")
    return [fault for fault in ALL if not words or fault.code in words or fault.key in words]
