"""HTTP as providers speak it: answers in pieces of any size, connections used again, certificates that must be right."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from orchestrator.gateway.upstream.connections.connection import (
    ConnectFailed,
    ConnectionBroke,
    HttpConnection,
    ReceiveTimeout,
)
from orchestrator.gateway.upstream.connections.framing import Answer, BadResponse, Target
from orchestrator.gateway.upstream.connections.pool import Connections
from orchestrator.outbound.addresses import refusal

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n4;ext=1\r\ndata\r\n1A\r\n" + b"x" * 26 + b"\r\n0\r\nTrailer: y\r\n\r\n"

WHOLE = {
    "chunked": (CHUNKED, b"data" + b"x" * 26),
    "sized": (OK + b"Content-Length: 5\r\n\r\nhello", b"hello"),
    "empty": (OK + b"content-length: 0\r\n\r\n", b""),
    "lines that end with LF": (OK.replace(b"\r", b"") + b"content-length: 2\n\nok", b"ok"),
    "after an interim answer": (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK + b"content-length: 2\r\n\r\nok", b"ok"),
    "a length beside chunks": (
        OK + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n4 \r\ndata\r\n0\r\n\r\n",
        b"data",
    ),
    "an offer of another protocol": (
        OK + b"connection: upgrade, keep-alive\r\nupgrade: h2c\r\ncontent-length: 2\r\n\r\nok",
        b"ok",
    ),
    "to the end of the connection": (b"HTTP/1.0 200\r\n\r\nuntil it closes", b"until it closes"),
}

BAD = {
    "not HTTP": b"SSH-2.0-OpenSSH\r\n\r\n",
    "HTTP/2": b"HTTP/2 200\r\n\r\n",
    "HTTP/2.0": b"HTTP/2.0 200 OK\r\n\r\n",
    "a folded header": OK + b"a: b\r\n c\r\n\r\n",
    "a space before the colon": OK + b"content-length : 5\r\n\r\nhello",
    "a length that is said twice": OK + b"content-length: 5\r\ncontent-length: 5\r\n\r\nhello",
    "lengths that differ": OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
    "a negative length": OK + b"content-length: -5\r\n\r\n",
    "an unknown coding": OK + b"transfer-encoding: gzip, chunked\r\n\r\n",
    "a chunk size with a sign": OK + b"transfer-encoding: chunked\r\n\r\n+4\r\ndata\r\n0\r\n\r\n",
    "a chunk longer than it said": OK + b"transfer-encoding: chunked\r\n\r\n3\r\ndata\r\n0\r\n\r\n",
    "an endless head": OK + b"a: " + b"b" * (70 << 10),
    "a head of many lines": OK + b"".join(b"a%d: %s\r\n" % (n, b"b" * 900) for n in range(80)) + b"\r\n",
    "endless interim answers": b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 2000,
    "endless trailers": OK + b"transfer-encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * 4000,
    "an endless line between chunks": OK + b"transfer-encoding: chunked\r\n\r\n" + b"0" * (20 << 10),
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
}

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.mark.parametrize("name", WHOLE)
def test_an_answer_is_the_same_however_it_is_cut(name: str) -> None:
    answer, expected = WHOLE[name]
    for cut in range(len(answer) + 1):
        received = Answer()
        for part in (answer[:cut], answer[cut:]):
            if part:
                received.feed(part)
        received.end()
        assert (b"".join(received.pieces), received.done, received.extra) == (expected, True, False)


@contextlib.asynccontextmanager
async def server(handle: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    busy: set[asyncio.Task[None]] = set()

    async def wrapped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        busy.add(task)
        try:
            await handle(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    running = await asyncio.start_server(wrapped, "127.0.0.1", 0, ssl=tls)
    try:
        yield running.sockets[0].getsockname()[1]
    finally:
        running.close()
        await asyncio.wait_for(asyncio.gather(*busy, return_exceptions=True), 60)


def connections(port: int, *, tls: ssl.SSLContext | None = None, host: str = "localhost", idle_s: float = 5) -> Connections:
    async def resolver(name: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    loop = asyncio.get_running_loop()
    return Connections(
        ("https" if tls else "http", host, port),
        rule=lambda address: refusal(address, allow_private=True),
        tls=tls or ssl.create_default_context(),
        idle_s=idle_s,
        monotonic=loop.time,
        resolver=resolver,
    )


async def get(connection: HttpConnection) -> bytes:
    head = await connection.request(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
    assert head.status == 200
    pieces = []
    while piece := await connection.piece():
        pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.anyio
async def test_answers_over_a_socket_and_connections_used_again() -> None:
    made = 0
    answers = [each for name, each in WHOLE.items() if name != "to the end of the connection"]

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal made
        made += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            for number in range(100):
                await reader.readuntil(b"\r\n\r\n")
                answer = answers[number % len(answers)][0]
                for start in range(0, len(answer), 7):
                    writer.write(answer[start : start + 7])
                    await writer.drain()
                    await asyncio.sleep(0)

    async with server(handle) as port:
        pool = connections(port)
        for _, expected in answers:
            async with pool.one() as connection:
                assert await get(connection) == expected
        assert made == 1
        async with pool.one(), pool.one() as second:
            assert await get(second) == answers[0][1]
        assert made == 2
        pool.close()


@pytest.mark.anyio
@pytest.mark.parametrize("name", BAD)
async def test_what_is_not_http_is_said(name: str) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(BAD[name])
        with contextlib.suppress(ConnectionError):
            await reader.read()

    async with server(handle) as port:
        pool = connections(port)
        with pytest.raises(BadResponse):
            async with pool.one() as connection:
                await get(connection)
        pool.close()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"", ConnectionBroke),
        (OK, ConnectionBroke),
        (CHUNKED[:-10], ConnectionBroke),
        (OK + b"content-length: 9\r\n\r\nhello", ConnectionBroke),
    ],
    ids=["nothing", "half a head", "half a chunked body", "half a body"],
)
async def test_a_cut_answer_is_no_answer(sent: bytes, expected: type[Exception]) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        writer.close()

    async with server(handle) as port:
        pool = connections(port)
        with pytest.raises(expected):
            async with pool.one() as connection:
                await get(connection)
        pool.close()


@pytest.mark.anyio
async def test_silence_ends_a_call_and_a_connection_closed_meanwhile_is_not_used() -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"content-length: 2\r\n\r\no")
        with contextlib.suppress(ConnectionError):
            await reader.read()

    async with server(handle) as port:
        pool = connections(port, idle_s=0.1)
        with pytest.raises(ReceiveTimeout):
            async with pool.one() as connection:
                await get(connection)
        pool.close()

    made = 0

    async def one_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal made
        made += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"content-length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    async with server(one_answer) as port:
        pool = connections(port)
        for number in (1, 2):
            async with pool.one() as connection:
                assert await get(connection) == b"ok"
            assert made == number
            while connection.usable:
                await asyncio.sleep(0.01)
        pool.close()


@pytest.mark.anyio
async def test_tls_trusts_the_operators_authority_and_no_other_name(
    authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(CHUNKED)
            await writer.drain()
        writer.close()

    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(authority / "server.pem", authority / "server.key")
    stranger = ssl.create_default_context()
    monkeypatch.setenv("SSL_CERT_FILE", str(authority / "ca.pem"))
    trusting = ssl.create_default_context()
    async with server(handle, serving) as port:
        pool = connections(port, tls=trusting)
        async with pool.one() as connection:
            assert await get(connection) == WHOLE["chunked"][1]
        pool.close()
        for tls, host, why in (
            (trusting, "other.example", "not valid for 'other.example'"),
            (stranger, "localhost", "issuer"),
        ):
            pool = connections(port, tls=tls, host=host)
            with pytest.raises(ConnectFailed, match=why) as refused:
                async with pool.one():
                    pass
            assert refused.value.lasting, "another try would end the same"


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("https://api.example/v1/messages", "POST /v1/messages HTTP/1.1\r\nhost: api.example\r\n"),
        ("http://[::1]:8080/a b/v1", "POST /a%20b/v1 HTTP/1.1\r\nhost: [::1]:8080\r\n"),
        ("https://api.example:443", "POST / HTTP/1.1\r\nhost: api.example\r\n"),
    ],
)
def test_a_request(url: str, line: str) -> None:
    sent = Target(url, {}).post({"x-api-key": "k"}, b"{}")
    assert sent == f"{line}x-api-key: k\r\nContent-Length: 2\r\n\r\n{{}}".encode()


@pytest.mark.parametrize("header", [{"a": "b\r\nc: d"}, {"a\n": "b"}, {"a": "\x00"}, {"a": "€"}])
def test_a_header_that_would_break_the_request_is_refused(header: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="cannot be sent"):
        Target("https://api.example/", {}).post(header, b"")


@pytest.mark.anyio
@pytest.mark.parametrize("cut", range(1, 9))
@pytest.mark.parametrize("form", ["chunked", "with a trailer", "of a known length"])
async def test_an_end_is_noticed_at_once_however_it_is_cut(monkeypatch: pytest.MonkeyPatch, form: str, cut: int) -> None:
    monkeypatch.setattr("orchestrator.gateway.upstream.connections.connection.BATCH_S", 60)
    answer = {
        "chunked": OK + b"transfer-encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n0\r\n\r\n",
        "with a trailer": OK + b"transfer-encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n0\r\na: b\r\n\r\n",
        "of a known length": OK + b"content-length: 9\r\n\r\ndata: 1\n\n",
    }[form]

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await reader.readuntil(b"\r\n\r\n")
        for part in (answer[:-cut], answer[-cut:]):
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.02)
        with contextlib.suppress(ConnectionError):
            await reader.read()

    async with server(handle) as port, asyncio.timeout(20):
        pool = connections(port)
        async with pool.one() as connection:
            assert await get(connection) == b"data: 1\n\n"
        pool.close()


@pytest.mark.anyio
async def test_last_words_are_handed_over_at_once_and_tokens_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.gateway.upstream.connections.connection.BATCH_S", 60)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"transfer-encoding: chunked\r\n\r\n")
        for data in (b"data: 1\n\n", b"data: 2\n\n", b"data: [DONE]\n\n"):
            await asyncio.sleep(0.05)
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            await writer.drain()
        with contextlib.suppress(ConnectionError):
            await reader.read()  # it never says that this was all

    async with server(handle) as port, asyncio.timeout(20):
        pool = connections(port)
        async with pool.one() as connection:
            await connection.request(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n", (b"[DONE]",))
            assert await connection.piece() == b"data: 1\n\ndata: 2\n\ndata: [DONE]\n\n"
            assert not connection.all_here
        pool.close()


@pytest.mark.anyio
@pytest.mark.parametrize("more", [b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nSTALE", b"?"], ids=["an answer", "a byte"])
@pytest.mark.parametrize("together", [True, False], ids=["at once", "later"])
async def test_what_nobody_asked_for_is_not_given_to_the_next_request(more: bytes, together: bool) -> None:
    answered = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal answered
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                answered += 1
                answer = OK + b"content-length: 2\r\n\r\nA%d" % answered
                writer.write(answer + more if together else answer)
                await writer.drain()
                if not together:
                    await sent.wait()
                    writer.write(more)
                    await writer.drain()

    async with server(handle) as port, asyncio.timeout(30):
        pool = connections(port)
        for number in (1, 2, 3):
            sent = asyncio.Event()
            async with pool.one() as connection:
                assert await get(connection) == b"A%d" % number
            sent.set()
            while connection.usable:
                await asyncio.sleep(0.01)
        pool.close()


@pytest.mark.anyio
async def test_a_cancelled_call_closes_its_connection() -> None:
    closed, began = asyncio.Event(), asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"content-length: 9\r\n\r\nhalf")
        began.set()
        with contextlib.suppress(ConnectionError):
            await reader.read()
        closed.set()

    async def call() -> None:
        async with pool.one() as connection:
            await get(connection)

    async with server(handle) as port, asyncio.timeout(30):
        pool = connections(port)
        calling = asyncio.create_task(call())
        await began.wait()
        calling.cancel()
        await asyncio.wait({calling})
        await closed.wait()
        pool.close()
