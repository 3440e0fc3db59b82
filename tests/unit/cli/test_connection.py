"""Where the service is found, and which token is sent where."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.api.connection import find, read_settings
from orchestrator.cli.errors import BadUsage
from orchestrator.settings import Settings


@pytest.mark.parametrize(
    ("settings", "environment", "url"),
    [
        pytest.param({}, {}, "http://127.0.0.1:8000", id="default"),
        pytest.param({"port": 8300}, {}, "http://127.0.0.1:8300", id="port"),
        pytest.param({"host": "0.0.0.0"}, {}, "http://127.0.0.1:8000", id="all addresses"),
        pytest.param({"host": "::1"}, {}, "http://[::1]:8000", id="IPv6"),
        pytest.param({}, {"BENCHYARD_URL": "https://yard.example/"}, "https://yard.example", id="given"),
    ],
)
def test_the_address(settings: dict[str, object], environment: dict[str, str], url: str) -> None:
    values = {"host": "127.0.0.1", "port": 8000, "data": Path("nowhere"), **settings}
    assert find(Settings(**values), environment).url == url  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["yard.example", "ftp://yard.example", "http://"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(BadUsage, match="BENCHYARD_URL"):
        find(Settings(data=Path("nowhere")), {"BENCHYARD_URL": url})


@pytest.mark.parametrize(
    ("configured", "environment", "token"),
    [
        pytest.param(None, {}, "kept", id="the data directory's"),
        pytest.param("given", {}, "given", id="the configured one first"),
        pytest.param(None, {"BENCHYARD_URL": "http://localhost:8000"}, "kept", id="to this machine"),
        pytest.param(None, {"BENCHYARD_URL": "http://yard.example"}, None, id="never to another machine"),
        pytest.param("given", {"BENCHYARD_URL": "http://yard.example"}, "given", id="unless it was given"),
    ],
)
def test_the_token(configured: str | None, environment: dict[str, str], token: str | None, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("kept\n")
    assert find(Settings(data=tmp_path, token=configured), environment).token == token


def test_the_login_link_and_what_is_not_shown(tmp_path: Path) -> None:
    connection = find(Settings(data=tmp_path, token="a/b c", port=8000), {})
    assert connection.login_link == "http://127.0.0.1:8000/login?token=a%2Fb%20c"
    assert "a/b c" not in repr(connection)


def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHYARD_PORT", "many")
    with pytest.raises(BadUsage, match="BENCHYARD_PORT is not valid"):
        read_settings()
