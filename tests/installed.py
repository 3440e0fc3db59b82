"""The project as pip installs it: a wheel built from a copy of the checkout, unpacked."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = (
    "pyproject.toml",
    "setup.py",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "runner.Dockerfile",
    "orchestrator.Dockerfile",
    "harness-inspect.Dockerfile",
    "harness-lm-eval.Dockerfile",
    "requirements",
    "scripts",
    "orchestrator",
    "runner",
)
BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"


def copy_checkout(into: Path) -> Path:
    """The checkout, with the browser code that `make setup` put there, so that no test needs npm."""
    into.mkdir(parents=True)
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, into / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, into / name)
    return into


def build(checkout: Path, into: Path, what: str = "build_wheel") -> Path:
    """A wheel or, with `build_sdist`, an archive of the sources."""
    into.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", BUILD, what, str(into)],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return into / done.stdout.strip().splitlines()[-1]


def unpack(wheel: Path, into: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(into)
    return into
