"""Everything that goes into our two images: its location in a checkout or an installed package, its digest, and the build
context. Standard library only, so that `scripts/build-images` works before anything is installed.

What a Dockerfile copies is read from the Dockerfile itself; there is no second list.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

NAMES = ("runner", "orchestrator")
HARNESSES = ("harness-inspect", "harness-lm-eval")
"""The images of preset harnesses, which nothing but their own runs needs."""
PACKAGES = ("orchestrator", "runner")
FILES = Path(__file__).parent / "files"
"""Exists only in an installed package: setup.py puts the checkout's top-level files here."""
BASE_SCRIPT = "scripts/base-image"


class SourcesMissing(Exception):
    """This installation lacks the files that an image is built from."""


@dataclass(frozen=True)
class Sources:
    root: Path
    """Contains the Dockerfiles, the locked requirements, pyproject.toml and the scripts."""
    packages: dict[str, Path]

    def dockerfile(self, image: str) -> Path:
        return self.root / f"{image}.Dockerfile"

    @property
    def base_script(self) -> Path:
        return self.root / BASE_SCRIPT

    def files(self, image: str) -> dict[str, Path]:
        """Every file of the image's build context: its path there, and its current location."""
        dockerfile = self.dockerfile(image)
        files = {dockerfile.name: dockerfile}
        for name in copied(dockerfile.read_text(encoding="utf-8")):
            source = self._source(name)
            if not source.exists():
                raise SourcesMissing(f"{name}, which {dockerfile.name} copies, is not in {self.root}")
            files |= {name: source} if source.is_file() else {f"{name}/{inner}": path for inner, path in _tree(source)}
        return files

    def digest(self, image: str) -> str:
        """The same for a checkout and for a package installed from it."""
        whole = hashlib.sha256()
        for name, path in sorted(self.files(image).items()):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            whole.update(f"{name}\0{is_program(name)}\0{content}\n".encode())
        return whole.hexdigest()

    def stage(self, image: str, into: Path) -> None:
        """Write the build context. File modes are fixed, whatever those of the installed files are."""
        for name, path in self.files(image).items():
            target = into / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            target.chmod(0o755 if is_program(name) else 0o644)
        for folder in (into, *(path for path in into.rglob("*") if path.is_dir())):
            folder.chmod(0o755)

    def _source(self, name: str) -> Path:
        package, *rest = PurePosixPath(name).parts
        return self.packages[package].joinpath(*rest) if package in self.packages else self.root / name


def find_sources(files: Path = FILES) -> Sources:
    """The sources of the installed package, or of the checkout that contains this module."""
    root = files if files.is_dir() else Path(__file__).parents[2]
    packages = {}
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            raise SourcesMissing(f"the package {name!r} is not installed")
        packages[name] = Path(spec.submodule_search_locations[0])
    sources = Sources(root, packages)
    if not all(sources.dockerfile(name).is_file() for name in NAMES):
        raise SourcesMissing(f"there is no Dockerfile in {root}: install from a checkout, its wheel or its sdist")
    return sources


def copied(dockerfile: str) -> list[str]:
    """What the Dockerfile copies from its build context."""
    lines = re.sub(r"\\\n", " ", dockerfile).splitlines()
    words = [line.split()[1:-1] for line in lines if re.match(r"COPY\s+(?!--from)", line)]
    return list(dict.fromkeys(word for sources in words for word in sources))


def is_program(name: str) -> bool:
    return name.startswith("scripts/")


def _tree(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files that .dockerignore admits."""
    for top, folders, names in os.walk(folder):
        folders[:] = [
            name for name in folders if name != "__pycache__" and not name.startswith(".") and Path(top, name) != FILES
        ]
        for name in names:
            if not name.startswith(".") and not name.endswith(".pyc"):
                path = Path(top, name)
                yield path.relative_to(folder).as_posix(), path
