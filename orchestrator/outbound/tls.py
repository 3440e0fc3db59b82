"""Which certificate authorities are trusted, for all outgoing connections alike.

The system's, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR` instead (OpenSSL reads these itself), plus those of
`BENCHYARD_CA_BUNDLE` and `REQUESTS_CA_BUNDLE`.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from orchestrator.startup import BadConfiguration

ADDED = ("BENCHYARD_CA_BUNDLE", "REQUESTS_CA_BUNDLE")
UNKNOWN_ISSUER = frozenset({18, 19, 20, 21})
"""OpenSSL's codes for a certificate whose authority is not trusted."""


@dataclass(frozen=True)
class ClientCertificate:
    """What we show a server that asks who we are. Without `key`, the private key is in the same file."""

    file: str
    key: str = ""


def tls_context(env: Mapping[str, str] = os.environ, client: ClientCertificate | None = None) -> ssl.SSLContext:
    """Raises `BadConfiguration` if a file named by a variable cannot be used. Certificates may be exchanged: a file that
    changed is read again."""
    files = tuple((name, env.get(name, "").strip()) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", *ADDED))
    named = [value for name, value in files if name in ADDED] + ([client.file, client.key] if client else [])
    return _context(files, client, tuple(_changed_at(path) for path in named if path))


def why_refused(error: ssl.SSLCertVerificationError) -> str:
    """Why a certificate was rejected, and what to do about it."""
    why = f"its certificate is not accepted: {error.verify_message}"
    if error.verify_code in UNKNOWN_ISSUER:
        why += "; if it is from an authority of your own, name the file with its certificate in BENCHYARD_CA_BUNDLE"
    return why


def why_refused_within(error: BaseException | None) -> str | None:
    """`why_refused` for an error raised by another library; None if a certificate is not the cause."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return None if error is None else why_refused(error)


@lru_cache(maxsize=8)
def _context(
    files: tuple[tuple[str, str], ...], client: ClientCertificate | None, changed_at: tuple[int, ...]
) -> ssl.SSLContext:
    context = ssl.create_default_context()
    for name, value in files:
        try:
            if name in ADDED and value:
                is_directory = Path(value).is_dir()
                context.load_verify_locations(None if is_directory else value, value if is_directory else None)
            elif name == "SSL_CERT_FILE" and value:
                Path(value).stat()
        except ssl.SSLError as error:
            raise BadConfiguration(f"{name}={value} cannot be used: it has no certificates in PEM form") from error
        except OSError as error:
            raise BadConfiguration(f"{name}={value} cannot be used: {error.strerror}") from error
    if client is not None:
        try:
            context.load_cert_chain(client.file, client.key or None, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            why = "it must hold a certificate and its private key in PEM form, without a password"
            raise BadConfiguration(f"the client certificate {client.file} cannot be used: {why}") from error
        except OSError as error:
            raise BadConfiguration(f"the client certificate {client.file} cannot be used: {error.strerror}") from error
    return context


def _no_password() -> str:
    """OpenSSL would otherwise ask on the terminal."""
    raise ValueError("the private key has a password")


def _changed_at(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0
