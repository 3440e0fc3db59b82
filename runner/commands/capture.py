"""Keeps the beginning and the end of a command's output, however much there is in between. Pure."""

from collections import deque

HEAD_BYTES = TAIL_BYTES = 1 << 20
CUT = "\n[... {} bytes were left out here ...]\n"


class Capture:
    def __init__(self, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._head_bytes, self._tail_bytes = head_bytes, tail_bytes
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def add(self, piece: bytes) -> None:
        self.total += len(piece)
        room = self._head_bytes - len(self._head)
        self._head += piece[:room]
        if rest := piece[room:] if room > 0 else piece:
            self._tail.append(rest[-self._tail_bytes :])
            self._tail_size += len(self._tail[-1])
            while self._tail_size - len(self._tail[0]) >= self._tail_bytes:
                self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        """Returns the kept output as text, whatever the bytes were, with a mark where something was dropped."""
        tail = b"".join(self._tail)[-self._tail_bytes :]
        missing = self.total - len(self._head) - len(tail)
        if not missing:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        return self._head.decode("utf-8", "replace") + CUT.format(missing) + tail.decode("utf-8", "replace")


def shortened(text: str, limit: int) -> str:
    """Keeps three quarters of the limit from the beginning and the rest from the end."""
    if len(text) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 4
    return f"{text[:head]}\n[... {len(text) - head - tail} characters were left out here ...]\n{text[-tail:]}"
