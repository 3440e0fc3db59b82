"""A full disk: every answer says so, wherever it is noticed, and the log that cannot be written changes nothing."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from orchestrator.db.session import DatabaseUnavailable
from orchestrator.system.log import LastingStream, configure
from tests.served import Service

FULL = Path("/dev/full")


@pytest.fixture
def log_on_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with FULL.open("w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        configure("debug")
        yield
        with pytest.raises(OSError, match="No space"):
            print("it is full indeed", file=stream, flush=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # what is buffered goes somewhere
    structlog.reset_defaults()


def test_a_log_line_that_cannot_be_written_is_counted() -> None:
    class Stream(io.StringIO):
        full = True

        def write(self, text: str) -> int:
            if self.full:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(text)

    stream = Stream()
    lasting = LastingStream(stream)
    print("one", file=lasting, flush=True)
    print("two", file=lasting, flush=True)
    stream.full = False
    print("three", file=lasting, flush=True)
    assert stream.getvalue().splitlines() == ['{"action": "log_lost", "lines": 2}', "three"]


@pytest.mark.anyio
@pytest.mark.usefixtures("log_on_a_full_disk")
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 507),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), 507),
        (DatabaseUnavailable("database or disk is full"), 503),
    ],
    ids=["disk", "quota", "database"],
)
async def test_a_full_disk_is_never_a_bare_500(
    service: Service, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    async def fails(*_arguments: object, **_named: object) -> None:
        raise error

    monkeypatch.setattr(service.services.runs, "get", fails)
    answer = await service.client.get("/api/container-runs/any")
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"]
    page = await service.client.get("/runs/any", headers={"accept": "text/html"})
    assert page.status_code == status
