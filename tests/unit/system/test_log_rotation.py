"""The log of a service in the background does not grow without end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator.system.log import LogRotation


@pytest.mark.parametrize("keep", [0, 1, 2])
def test_a_large_log_is_replaced_and_some_older_ones_stay(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "service.log"
    stream = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    rotation = LogRotation(path, max_bytes=10, keep=keep, streams=(stream,))
    try:
        os.write(stream, b"short")
        assert not rotation.rotate()
        for number in range(4):
            os.write(stream, b"this is generation %d" % number)
            assert rotation.rotate()
        os.write(stream, b"newest")
    finally:
        os.close(stream)
    assert path.read_bytes() == b"newest"
    assert path.stat().st_mode & 0o777 == 0o600
    older = [(tmp_path / f"service.log.{number}") for number in range(1, keep + 1)]
    assert [each.read_bytes()[-1:] for each in older] == [b"3", b"2"][:keep]
    assert sorted(tmp_path.iterdir()) == sorted([path, *older])


def test_a_stream_that_is_not_the_log_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "service.log").write_bytes(b"x" * 100)
    with (tmp_path / "another").open("wb") as other:
        rotation = LogRotation(tmp_path / "service.log", max_bytes=10, keep=1, streams=(other.fileno(),))
        assert not rotation.rotate()
    assert (tmp_path / "service.log").stat().st_size == 100
