"""What a model wrote cannot steer a terminal; programs get every byte."""

from __future__ import annotations

import io

import pytest

from orchestrator.cli.view.output import write_out

PIECES = [b"a,b\r\n\x1b]0;owned\x07,\x9b", b"31m,\xc3", b"\xa9,\xe2\x80\xae,\xc2\x9b2J\n"]


class _Stdout(io.TextIOWrapper):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="")
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_a_file_on_standard_output(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = _Stdout(terminal=terminal)
    monkeypatch.setattr("sys.stdout", stdout)
    write_out(iter(PIECES))
    stdout.flush()
    written = stdout.buffer.getvalue()  # type: ignore[attr-defined]
    if not terminal:
        assert written == b"".join(PIECES)
        return
    text = written.decode()
    assert "\N{LATIN SMALL LETTER E WITH ACUTE}" in text
    assert "a,b\n" in text
    assert not [character for character in text if not character.isprintable() and character != "\n"]
