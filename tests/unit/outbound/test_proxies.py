"""Which proxy leads where: tables of variables and addresses."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest

from orchestrator.outbound.proxies import Proxies, Proxy
from orchestrator.outbound.tls import tls_context
from orchestrator.startup import BadConfiguration

PROXY = {"HTTPS_PROXY": "http://secure:1", "HTTP_PROXY": "http://plain:2"}


@pytest.mark.parametrize(
    ("env", "url", "expected"),
    [
        ({}, ("https", "api.example", 443), None),
        (PROXY, ("https", "api.example", 443), "http://secure:1"),
        (PROXY, ("http", "api.example", 80), "http://plain:2"),
        ({"ALL_PROXY": "all:3"}, ("http", "api.example", 80), "http://all:3"),
        ({"ALL_PROXY": "http://all", **PROXY}, ("https", "api.example", 443), "http://secure:1"),
        ({"ALL_PROXY": "https://all", "HTTP_PROXY": " "}, ("http", "api.example", 80), "https://all:443"),
        ({"ALL_PROXY": "socks5://all", **PROXY}, ("http", "api.example", 80), "http://plain:2"),
        ({"https_proxy": "http://lower:4", **PROXY}, ("https", "api.example", 443), "http://lower:4"),
        ({"ALL_PROXY": "http://[2001:db8::1]:3"}, ("http", "api.example", 80), "http://[2001:db8::1]:3"),
    ],
)
def test_the_proxy_of_an_address(env: dict[str, str], url: tuple[str, str, int], expected: str | None) -> None:
    proxy = Proxies(env).of(*url)
    assert (proxy and proxy.url) == expected


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost."])
def test_this_machine_is_called_directly(host: str) -> None:
    assert Proxies(PROXY).of("https", host, 443) is None


@pytest.mark.parametrize(
    ("exempt", "host", "port", "direct"),
    [
        ("api.example", "api.example", 443, True),
        ("api.example", "API.Example", 443, True),
        ("api.example", "eu.api.example", 443, True),
        (".example", "api.example", 443, True),
        ("*.example", "api.example", 443, True),
        ("api.example", "other-api.example", 443, False),
        ("other, api.example", "api.example", 443, True),
        ("api.example:443", "api.example", 443, True),
        ("api.example:8443", "api.example", 443, False),
        ("*", "api.example", 443, True),
        ("10.1.2.3", "10.1.2.3", 443, True),
        ("10.1.2.3:443", "10.1.2.3", 443, True),
        ("10.1.2.3:80", "10.1.2.3", 443, False),
        ("10.0.0.0/8", "10.1.2.3", 443, True),
        ("10.0.0.0/8", "11.1.2.3", 443, False),
        ("2001:db8::/32", "2001:db8::5", 443, True),
        ("[2001:db8::5]:443", "2001:db8::5", 443, True),
        ("0.0.0.0/0", "api.example", 443, False),
        (" , ", "api.example", 443, False),
    ],
)
def test_no_proxy(exempt: str, host: str, port: int, direct: bool) -> None:
    assert (Proxies({**PROXY, "NO_PROXY": exempt}).of("https", host, port) is None) is direct
    assert (Proxies({**PROXY, "no_proxy": exempt, "NO_PROXY": "*"}).of("https", host, port) is None) is (
        direct or not exempt.strip()
    )


def test_credentials_are_decoded_and_not_shown() -> None:
    proxy = Proxies({"ALL_PROXY": "http://user:pass%40word@proxy:3128"}).of("https", "api.example", 443)
    assert proxy == Proxy("http", "proxy", 3128, "ALL_PROXY", ("user", "pass@word"))
    assert proxy.authorization == "Basic dXNlcjpwYXNzQHdvcmQ="
    assert "word" not in f"{proxy} {proxy!r} {proxy.url}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("socks5://user:secret@proxy:1080", "socks5 proxy"),
        ("http://", "not the address"),
        ("http://proxy:x", "not the address"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_said_without_its_password(value: str, expected: str) -> None:
    with pytest.raises(BadConfiguration, match=f"ALL_PROXY.*{expected}") as refused:
        Proxies({"ALL_PROXY": value})
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("variable", ["BENCHYARD_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"])
def test_a_bundle_that_is_not_there_is_said(variable: str, tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match=f"{variable}=.*No such file"):
        tls_context({variable: str(tmp_path / "none.pem")})


def test_a_bundle_without_certificates_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    with pytest.raises(BadConfiguration, match="no certificates in PEM form"):
        tls_context({"BENCHYARD_CA_BUNDLE": str(tmp_path / "empty.pem")})


def test_certificates_are_checked() -> None:
    context = tls_context(os.environ)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
