"""What comes before a body, as bytes on a real socket: no head is endless, and one that means two things is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.types import Receive, Scope, Send

from orchestrator.serving.runner_listener import QuietServer, server_config
from orchestrator.serving.timeouts import MAX_HEAD_BYTES

pytestmark = pytest.mark.anyio
PIECE = b"x" * 8192
ENDLESS = 200  # pieces: far more than any head may have
CHUNKED = b"POST /p HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Says how much it was sent."""
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    body = f"{scope['method']} {scope['path']} {size}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def connection() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    server = QuietServer(server_config(echo, "127.0.0.1", 0))
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.servers[0].sockets[0].getsockname()[1])
    try:
        yield reader, writer
    finally:
        writer.close()
        server.should_exit = True
        await asyncio.wait_for(task, 30)


async def answer_to(*pieces: bytes) -> tuple[bytes, int]:
    """What comes back, and how many of the pieces were taken before."""
    async with connection() as (reader, writer):
        taken = 0
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                taken += 1
                await asyncio.sleep(0)
            answer = await asyncio.wait_for(reader.read(65536), 20)
        except ConnectionError:
            answer = b""
        return answer, taken


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([b"GET / HTTP/1.1\r\nhost: x\r\nlong: ", *[PIECE] * ENDLESS], id="one header without end"),
        pytest.param([b"GET / HTTP/1.1\r\nhost: x\r\n", *[b"a: " + PIECE + b"\r\n"] * ENDLESS], id="headers without end"),
        pytest.param([b"GET /", *[PIECE] * ENDLESS], id="an address without end"),
        pytest.param(
            [
                b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n",
                *[b"a: " + PIECE + b"\r\n"] * ENDLESS,
            ],
            id="trailers without end",
        ),
        pytest.param(
            [CHUNKED + b"0\r\na: ", *[PIECE] * ENDLESS],
            id="one trailer without end",
        ),
        pytest.param(
            [CHUNKED + b"1;", *[PIECE] * ENDLESS],
            id="a chunk's extension without end",
        ),
        pytest.param([*[b"\r\n" * 4096] * ENDLESS], id="blank lines without end"),
    ],
)
async def test_what_has_no_end_is_cut_off(pieces: list[bytes]) -> None:
    answer, _ = await answer_to(*pieces)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="no host"),
        pytest.param(b"GET / HTTP/1.1\r\nhost: a\r\nHost: b\r\n\r\n", id="two hosts"),
        pytest.param(
            b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", id="two ends"
        ),
        pytest.param(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab", id="two lengths"),
        pytest.param(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked, x\r\n\r\n", id="chunked is not the last"),
        pytest.param(b"GET / HTTP/1.1\r\nhost: x\r\na : b\r\n\r\n", id="space after a name"),
        pytest.param(b"GET / HTTP/1.1\nhost: x\n\n", id="bare line feeds"),
        pytest.param(b"GET / HTTP/1.1\r\nhost: x\r\ncookie: a=\x7f\r\n\r\n", id="a control character"),
        pytest.param("GET /ä HTTP/1.1\r\nhost: x\r\n\r\n".encode(), id="letters that no address has"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01", id="TLS"),
    ],
)
async def test_what_can_be_read_in_two_ways_is_refused(head: bytes) -> None:
    answer, _ = await answer_to(head)
    assert answer.startswith(b"HTTP/1.1 400 "), answer


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        pytest.param([b"GET /a%20b?c=d HTTP/1.1\r\nHost: x\r\n\r\n"], b"GET /a b 0", id="plain"),
        pytest.param([b"GET / HTTP/1.0\r\n\r\n"], b"GET / 0", id="HTTP/1.0 needs no host"),
        pytest.param(
            [b"POST /p HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (30 * len(PIECE)), *[PIECE] * 30],
            b"POST /p %d" % (30 * len(PIECE)),
            id="a large body",
        ),
        pytest.param(
            [CHUNKED, *[b"1\r\nx\r\n" * 4096] * 10, b"0\r\nafter: word\r\n\r\n"],
            b"POST /p 40960",
            id="many small chunks",
        ),
        pytest.param(
            [b"GET / HTTP/1.1\r\nhost: x\r\na: " + b"x" * (MAX_HEAD_BYTES // 2) + b"\r\n\r\n"], b"GET / 0", id="a large head"
        ),
        pytest.param(
            [bytes([each]) for each in b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n"], b"GET /slow 0", id="in single bytes"
        ),
    ],
)
async def test_what_is_in_order_is_served(pieces: list[bytes], said: bytes) -> None:
    answer, taken = await answer_to(*pieces)
    assert taken == len(pieces)
    assert answer.endswith(said)


async def test_requests_one_after_the_other_and_ahead_of_their_answers() -> None:
    async with asyncio.timeout(30), connection() as (reader, writer):
        for number in range(3):
            writer.write(b"GET /%d HTTP/1.1\r\nhost: x\r\n\r\n" % number)
            assert (await reader.readuntil(b"GET /%d 0" % number)).startswith(b"HTTP/1.1 200 ")
        writer.write(b"".join(b"GET /ahead%d HTTP/1.1\r\nhost: x\r\n\r\n" % number for number in range(3)))
        for number in range(3):
            assert (await reader.readuntil(b"GET /ahead%d 0" % number)).startswith(b"HTTP/1.1 200 ")
