"""HTTP/1.1 as bytes: writes requests and parses answers with httptools, decompressing if a proxy compressed them unasked.
Every length is capped. Pure."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlsplit

import httptools

from orchestrator.outbound.proxies import Proxy
from orchestrator.system.zstd import ZstdDecompressor, ZstdError

MAX_HEAD_BYTES = 64 << 10
MAX_LINE_BYTES = 16 << 10
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class BadResponse(Exception):
    """The received bytes are not HTTP/1.1."""


@dataclass(frozen=True)
class Head:
    """Status and headers; names in lower case, repeated values joined."""

    status: int
    headers: dict[str, str]


class Answer:
    """One answer as it arrives. `done`: it is complete; `extra`: more bytes came than belong to it; `lasting`: the
    connection may be reused."""

    def __init__(self) -> None:
        self.head: Head | None = None
        self.pieces: list[bytes] = []
        self.done = self.extra = self.lasting = False
        self._headers: dict[str, str] = {}
        self._refused: BadResponse | None = None
        self._until_closed = False
        self._overhead, self._most_overhead = 0, MAX_HEAD_BYTES
        """Bytes outside the body since its last piece, or since the beginning."""
        self._parser = httptools.HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(
            lenient_optional_cr_before_lf=True, lenient_chunked_length=True, lenient_spaces_after_chunk_size=True
        )

    def feed(self, data: bytes) -> None:
        """Raises `BadResponse`."""
        if self.done:
            self.extra = True
            return
        self._overhead += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            if not self.done:
                raise self._refused or BadResponse(f"it is not HTTP/1.1: {error}") from error
            self.extra = True
        if self._refused is not None:
            raise self._refused
        if not self.done and self._overhead > self._most_overhead:
            raise BadResponse("its head is too long" if self.head is None else "it has a line that is too long")

    def end(self) -> None:
        """The connection was closed properly; raises `BadResponse` if the answer is incomplete."""
        if self.head is not None and self._until_closed:
            self.done = True
        if not self.done:
            raise BadResponse("it was cut short")

    # Callbacks of httptools.

    def on_message_begin(self) -> None:
        self.extra = self.done

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.head is None:
            key, text = name.decode("latin-1").lower(), value.strip(b" \t").decode("latin-1")
            self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        if self.head is not None:
            return
        status, headers, self._headers = self._parser.get_status_code(), self._headers, {}
        coding = headers.get("transfer-encoding", "").strip().lower()
        if self._parser.get_http_version() not in ("1.0", "1.1"):
            self._refused = BadResponse("it does not begin with a status line")
        elif status == 101:
            self._refused = BadResponse("it changes the protocol")
        elif coding not in ("", "chunked"):
            self._refused = BadResponse(f"its transfer coding is {coding[:40]}")
        elif (size := sum(len(name) + len(value) for name, value in headers.items())) > MAX_HEAD_BYTES:
            self._refused = BadResponse("its head is too long")
        elif status >= 200:
            self.head, self._most_overhead = Head(status, headers), size + MAX_LINE_BYTES
            self._until_closed = not coding and "content-length" not in headers

    def on_body(self, data: bytes) -> None:
        if not self.done:
            self.pieces.append(data)
            self._overhead = 0

    def on_message_complete(self) -> None:
        if self.head is not None and not self.done:
            self.done, self.lasting = True, self._parser.should_keep_alive()


class Target:
    """A URL to post to, with the headers that all calls share. A call's own headers override `headers`.

    Through a proxy, plain HTTP uses the absolute URL. HTTPS goes through a tunnel and looks as usual.
    """

    def __init__(self, url: str, headers: Mapping[str, str], proxy: Proxy | None = None) -> None:
        parts = urlsplit(url)
        # Some proxies add a second Content-Length if the first is not spelt like this.
        self._headers = {name.lower(): value for name, value in headers.items() if name.lower() != "content-length"}
        self._headers["host"] = host_header(parts.scheme, parts.hostname or "", parts.port)
        path = quote(parts.path, safe="/%:@!$&()*+,;=~-._") or "/"
        if parts.query:
            path += "?" + quote(parts.query, safe="/%:@!$&()*+,;=~-._?")
        if proxy is not None and parts.scheme == "http":
            path = f"http://{self._headers['host']}{path}"
            if proxy.authorization:
                self._headers["proxy-authorization"] = proxy.authorization
        self._line = f"POST {path} HTTP/1.1\r\n"

    def post(self, headers: Mapping[str, str], content: bytes) -> bytes:
        """Raises `ValueError` if a header cannot be sent."""
        everything = {**self._headers, **headers, "Content-Length": str(len(content))}
        for name, value in everything.items():
            if _NAME.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
                raise ValueError(f"has a header {name!r} that cannot be sent")
        head = self._line + "".join(f"{name}: {value}\r\n" for name, value in everything.items()) + "\r\n"
        return head.encode("latin-1") + content


def tunnel_request(host: str, port: int, proxy: Proxy) -> bytes:
    """The CONNECT request that asks a proxy for a tunnel to a host."""
    target = f"{host_header('', host, None)}:{port}"
    credentials = f"proxy-authorization: {proxy.authorization}\r\n" if proxy.authorization else ""
    return f"CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n{credentials}\r\n".encode("latin-1")


def host_header(scheme: str, host: str, port: int | None) -> str:
    if ":" in host:
        host = f"[{host}]"
    elif not host.isascii():
        host = host.encode("idna").decode()
    return host if port in (None, {"https": 443, "http": 80}.get(scheme)) else f"{host}:{port}"


PIECE_BYTES = 64 << 10
_PLAIN = frozenset({"", "identity", "none"})


class UnknownCoding(Exception):
    """The content encoding is not supported."""


class BadCoding(Exception):
    """The data does not match its content encoding."""


class Decoder(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decompress `data` in pieces of bounded size. Raises `BadCoding`."""


def decoder_of(coding: str) -> Decoder | None:
    """The decoder for a `content-encoding`; None if there is nothing to decode. Raises `UnknownCoding`."""
    names = {part.strip().lower() for part in coding.split(",")} - _PLAIN
    if not names:
        return None
    if names <= {"gzip", "x-gzip"}:
        return _Zlib(zlib.MAX_WBITS | 16)
    if names == {"deflate"}:
        return _Zlib(zlib.MAX_WBITS)
    if names == {"zstd"}:
        return _Zstd()
    raise UnknownCoding(f"it is compressed with {coding[:40]}, which was not requested")


class _Zlib:
    def __init__(self, bits: int) -> None:
        self._inner = zlib.decompressobj(bits)

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data and not self._inner.eof:
            try:
                piece = self._inner.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise BadCoding("its content is not compressed as its header says") from error
            data = self._inner.unconsumed_tail
            if piece:
                yield piece


class _Zstd:
    def __init__(self) -> None:
        self._inner = ZstdDecompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        while not self._inner.eof and (data or not self._inner.needs_input):
            try:
                piece = self._inner.decompress(data, PIECE_BYTES)
            except ZstdError as error:
                raise BadCoding("its content is not compressed as its header says") from error
            data = b""
            if piece:
                yield piece
