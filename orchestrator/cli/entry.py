"""The entry point of the `benchyard` command; names the extra to install if a package is missing. Its top-level imports
need the standard library only.
"""

from __future__ import annotations

import json
import sys
from importlib import metadata

from orchestrator.system.imports import without_collector

OURS = ("orchestrator", "runner")
EXTRA = "orchestrator"


def main() -> None:
    """Runs the command, or names the missing package. `serve` alone does not load the other commands: the service would
    keep them in memory for as long as it runs."""
    try:
        with without_collector():
            if sys.argv[1:] == ["serve"]:
                from orchestrator.cli.local.foreground import serve as run
            else:
                from orchestrator.cli.main import main as run
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if not missing or missing in OURS:
            raise
        sys.stderr.write(
            f"benchyard: the Python package {missing!r} is not installed; this command needs the extra {EXTRA!r}: "
            f"{install_command(_installed_from())}\n"
        )
        sys.exit(1)
    run()


def install_command(source: str | None) -> str:
    """`source` is the directory or file that this installation was made from, if known."""
    return f"pip install '{source or 'benchyard'}[{EXTRA}]'"


def _installed_from() -> str | None:
    """Installers record it (PEP 610), except for packages from an index."""
    try:
        record = metadata.distribution("benchyard").read_text("direct_url.json")
        url = str(json.loads(record)["url"]) if record else ""
    except (metadata.PackageNotFoundError, ValueError, KeyError, TypeError):
        return None
    if url.startswith("file://"):
        from urllib.parse import unquote, urlsplit

        return unquote(urlsplit(url).path)
    return f"benchyard @ {url}" if url else None
