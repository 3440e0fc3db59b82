"""Fetches a file from elsewhere for a command, bounded in size, by the proxies and authorities of the environment."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import httpx

from orchestrator.cli.errors import CliError
from orchestrator.cli.view.text import clean
from orchestrator.outbound.tls import tls_context

TIMEOUT = httpx.Timeout(60, connect=10)


def fetch_file(url: str, into: Path, max_bytes: int) -> None:
    """Raises `CliError` in words that say what to do."""
    host = clean(urlsplit(url).netloc.rpartition("@")[2])
    try:
        with (
            httpx.stream("GET", url, timeout=TIMEOUT, follow_redirects=True, verify=tls_context()) as response,
            into.open("wb") as file,
        ):
            if response.status_code != httpx.codes.OK:
                raise CliError(f"{host} answered {response.status_code}; check the address.")
            size = 0
            for part in response.iter_bytes():
                size += len(part)
                if size > max_bytes:
                    raise CliError(f"The file at {host} is larger than {max_bytes:,} bytes.")
                file.write(part)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise CliError(f"{host} cannot be asked: {clean(error) or type(error).__name__}.") from error
