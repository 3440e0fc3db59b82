"""The version of this installation, from its package metadata."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def own_version() -> str:
    """`0` if the sources run without being installed."""
    try:
        return version("benchyard")
    except PackageNotFoundError:
        return "0"
