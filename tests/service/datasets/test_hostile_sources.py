"""Datasets from hostile places: addresses inside, redirects to them, files that unpack without end."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from orchestrator.alerts.sending.webhooks import AllowedAddresses
from orchestrator.datasets.errors import BadSource, DownloadFailed
from orchestrator.datasets.fetching import library
from orchestrator.datasets.formats import unpacking
from orchestrator.datasets.formats.source import Source
from tests.served import Service

NOBODY = AllowedAddresses([], "BENCHYARD_DATASET_ALLOW")
LOOPBACK = AllowedAddresses(["127.0.0.0/8"], "BENCHYARD_DATASET_ALLOW")


class _Redirects(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        self.send_response(302)
        self.send_header("location", "http://169.254.169.254/latest/meta-data")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def redirects() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), _Redirects)
    server.asked = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "10.0.0.1", "169.254.169.254", "0.0.0.0", "2130706433", "[::ffff:127.0.0.1]"]
)
def test_addresses_inside_are_refused(tmp_path: Path, host: str) -> None:
    with pytest.raises(DownloadFailed, match="may not be fetched"):
        library.add(tmp_path, library.Order("mine", source=f"http://{host}:9/x.jsonl"), judge=NOBODY.judge)


def test_a_redirect_is_judged_too(tmp_path: Path, redirects: HTTPServer) -> None:
    url = f"http://127.0.0.1:{redirects.server_port}/x.jsonl"
    with pytest.raises(DownloadFailed, match=r"169\.254\.169\.254"):
        library.add(tmp_path, library.Order("mine", source=url), judge=LOOPBACK.judge)
    assert redirects.asked == ["/x.jsonl"]  # type: ignore[attr-defined]


@pytest.mark.anyio
async def test_the_service_refuses_them(shared_service: Service) -> None:
    body = {"name": "mine", "source": f"{shared_service.url}/healthz"}
    assert (await shared_service.client.post("/api/datasets", json=body)).status_code == 202
    async with asyncio.timeout(60):
        while (found := (await shared_service.client.get("/api/datasets/mine")).json())["state"] == "running":
            await asyncio.sleep(0.05)
    assert found["state"] == "failed"
    assert "BENCHYARD_DATASET_ALLOW" in found["error"]


def test_a_file_of_blank_lines_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "blank.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n" * 5_000_000))
    with pytest.raises(BadSource, match="blank lines"):
        library.add(tmp_path, library.Order("mine", source=str(path)))


def test_a_file_of_useless_lines_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "useless.jsonl.gz"
    path.write_bytes(gzip.compress(b"x\n" * 300_000))
    with pytest.raises(BadSource, match="cannot be used"):
        library.add(tmp_path, library.Order("mine", source=str(path)))


@pytest.mark.parametrize(
    "read", [lambda source: list(source.lines()), lambda source: source.whole()], ids=["lines", "whole"]
)
def test_a_file_that_unpacks_without_end_is_given_up(tmp_path: Path, read: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "ROOM_BYTES", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"x" * (30 << 20)))
    with pytest.raises(BadSource, match="unpacks to more than"):
        read(Source(path))  # type: ignore[operator]


class _Cancelled(Exception):
    pass


@pytest.mark.parametrize("content", [b"\n" * 90_000, b'{"a": 1}\n' * 90_000], ids=["blank", "lines"])
def test_a_cancel_is_seen_between_lines(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "long.gz"
    path.write_bytes(gzip.compress(content))
    calls = 0

    def progress(_done: int, _total: int) -> None:
        nonlocal calls
        calls += 1
        if calls > 10:
            raise _Cancelled

    with pytest.raises(_Cancelled):
        for _ in Source(path, progress).lines():
            pass
