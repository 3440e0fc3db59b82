"""The version of this installation, as its package says."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def own_version() -> str:
    """`0` where the sources run without having been installed."""
    try:
        return version("benchyard")
    except PackageNotFoundError:
        return "0"
