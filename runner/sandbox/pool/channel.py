"""The runner's end of a child's control socket: buffered, bounded, with one reader for the child's whole life."""

import asyncio
import contextlib
import socket

_PIECE = 64 * 1024
LARGE = 1 << 20


class Channel:
    """Reads little more than what is awaited; unsolicited data from a child is left unread."""

    def __init__(self, ours: socket.socket) -> None:
        ours.setblocking(False)
        self._ours = ours
        self._loop = asyncio.get_running_loop()
        self._got = bytearray()
        self._waiter: asyncio.Future[None] | None = None
        self._listening = False

    async def send(self, message: bytes) -> None:
        """Sends the whole message."""
        try:
            sent = self._ours.send(message)
        except BlockingIOError:
            sent = 0
        if sent < len(message):
            await self._loop.sock_sendall(self._ours, message[sent:])

    def send_descriptor(self, header: bytes, fd: int) -> None:
        """Sends a few bytes with a descriptor."""
        socket.send_fds(self._ours, [header], [fd])

    async def receive(self, size: int) -> bytes:
        """Returns `size` bytes; raises EOFError if the child has closed the connection."""
        got = self._got
        while len(got) < size:
            got += await self._piece(size - len(got))
        answer = bytes(got[:size])
        del got[:size]
        return answer

    async def _piece(self, size: int) -> bytes:
        while True:
            with contextlib.suppress(BlockingIOError):
                piece = self._ours.recv(max(_PIECE, min(size, LARGE)))
                if not piece:
                    raise EOFError
                return piece
            self._waiter = self._loop.create_future()
            if not self._listening:
                self._listening = True
                self._loop.add_reader(self._ours.fileno(), self._readable)
            try:
                await self._waiter
            finally:
                self._waiter = None

    def _readable(self) -> None:
        if self._waiter is None:
            self._deafen()
        elif not self._waiter.done():
            self._waiter.set_result(None)

    def _deafen(self) -> None:
        if self._listening:
            self._listening = False
            self._loop.remove_reader(self._ours.fileno())

    def close(self) -> None:
        self._deafen()
        self._ours.close()
