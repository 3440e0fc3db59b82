"""Length-prefixed JSON on a stream descriptor, blocking, for the side inside the sandbox."""

import json
import os
from typing import Any

HEADER_BYTES = 4
LARGEST = 64 * 1024 * 1024
_encode = json.JSONEncoder(check_circular=False).encode


def read_exactly(fd: int, size: int) -> bytes:
    """Reads `size` bytes; raises EOFError if the other side has closed."""
    parts = []
    while size:
        part = os.read(fd, min(size, 1 << 20))
        if not part:
            raise EOFError("the other side has gone")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_frame(fd: int) -> Any:
    """Reads the next message."""
    size = int.from_bytes(read_exactly(fd, HEADER_BYTES), "little")
    if size > LARGEST:
        raise EOFError("a message larger than any honest one")
    return json.loads(read_exactly(fd, size))


def write_frame(fd: int, message: Any) -> None:
    """Sends a message."""
    body = _encode(message).encode()
    rest = memoryview(len(body).to_bytes(HEADER_BYTES, "little") + body)
    while rest:
        rest = rest[os.write(fd, rest) :]
