"""Options of every connection to the orchestrator, so that a dead one is noticed within seconds. Standard library only.

A container that changes its network has a new address: packets of its old connections reach nobody, and nobody says so. A
model call may be silent for minutes, so no time-out of reading tells a dead connection from a slow model; the kernel can.
"""

from __future__ import annotations

import socket

DEAD_AFTER_S = 20
"""Data that was not acknowledged for so long, or as many seconds of probes without an answer, end a connection."""
FIRST_PROBE_S, PROBE_EVERY_S = 10, 5

SOCKET_OPTIONS: list[tuple[int, int, int]] = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)] + [
    (socket.IPPROTO_TCP, getattr(socket, name), value)
    for name, value in (
        ("TCP_KEEPIDLE", FIRST_PROBE_S),
        ("TCP_KEEPINTVL", PROBE_EVERY_S),
        ("TCP_KEEPCNT", (DEAD_AFTER_S - FIRST_PROBE_S) // PROBE_EVERY_S + 1),
        ("TCP_USER_TIMEOUT", 1000 * DEAD_AFTER_S),
    )
    if hasattr(socket, name)
]


def notice_death(connection: socket.socket) -> None:
    """Set the options on a connection that is there already."""
    for level, name, value in SOCKET_OPTIONS:
        connection.setsockopt(level, name, value)
