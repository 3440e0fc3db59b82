"""Where the `benchyard` command starts. An installation without the packages that it needs is told which extra to install.
Must import nothing but the standard library at its top."""

from __future__ import annotations

import json
import sys
from importlib import metadata

OURS = ("orchestrator", "runner")
EXTRA = "orchestrator"


def main() -> None:
    """Run the command, or say what is missing."""
    try:
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
    """What to type; `source` is the directory or file that this installation was made from, if that is known."""
    return f"pip install '{source or 'benchyard'}[{EXTRA}]'"


def _installed_from() -> str | None:
    """Installers leave a note of it (PEP 610), except for what came from a package index."""
    try:
        note = metadata.distribution("benchyard").read_text("direct_url.json")
        url = str(json.loads(note)["url"]) if note else ""
    except (metadata.PackageNotFoundError, ValueError, KeyError, TypeError):
        return None
    if url.startswith("file://"):
        from urllib.parse import unquote, urlsplit

        return unquote(urlsplit(url).path)
    return f"benchyard @ {url}" if url else None
