"""Finds the files with results and reads what is new in them. Runs as the harness's user in a process of its own, so that a
hostile file harms nothing but that process.

Only regular files below the working directory are read: a link is not followed. What comes out are lines of JSON: items,
then one line for each file that says how far it was read, or why it cannot be.
"""

import contextlib
import json
import os
import resource
import stat
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from runner.contract.harness import MAX_HARNESS_ITEMS, ResultsRule
from runner.harness.readers.formats import READERS
from runner.harness.readers.item import Progress, Unreadable, bounded

MAX_FILES = 200
MAX_ENTRIES = 20_000
CPU_S = 300
MEMORY_BYTES = 2 << 30
"""Of address space, for one scan."""

Marks = dict[str, int]
Emit = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Scan:
    """What to read: the rule, where, and how far each file was read before."""

    rule: ResultsRule
    folder: str
    marks: Marks
    final: bool


def limit_resources() -> None:
    """So that no file can occupy the machine: applies to the calling process, for good."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_scan(scan: Scan, emit: Emit) -> None:
    items = 0
    for path in matching_files(scan.folder, scan.rule.paths):
        progress = Progress(mark=scan.marks.get(path, 0), final=scan.final)
        trouble = None
        try:
            with open_regular(scan.folder, path) as file:
                for item in READERS[scan.rule.format](file, path, progress):
                    items += 1
                    if items > MAX_HARNESS_ITEMS:
                        raise Unreadable(f"there are more than {MAX_HARNESS_ITEMS} items")
                    emit({"item": asdict(bounded(item))})
        except (OSError, Unreadable, MemoryError) as error:
            trouble = f"{path}: {error or type(error).__name__}"
        emit({"file": path, "mark": progress.mark, "expected": progress.expected, "trouble": trouble})


def matching_files(folder: str, patterns: list[str]) -> list[str]:
    """Paths relative to the folder, in order of their names. Links are neither followed nor listed."""
    paths = sorted(path for path in _walk(folder) if any(matches(path, pattern) for pattern in patterns))
    return paths[:MAX_FILES]


def matches(path: str, pattern: str) -> bool:
    """`*` matches within a part of a path, `**` any number of parts."""
    return _parts_match(PurePosixPath(path).parts, PurePosixPath(pattern).parts)


def _parts_match(parts: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    if not patterns:
        return not parts
    if patterns[0] == "**":
        return any(_parts_match(parts[skipped:], patterns[1:]) for skipped in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], patterns[0]) and _parts_match(parts[1:], patterns[1:])


def _walk(folder: str) -> Iterator[str]:
    seen = 0
    for root, _, names in os.walk(folder, followlinks=False):
        for name in names:
            seen += 1
            if seen > MAX_ENTRIES:
                return
            path = os.path.join(root, name)
            with contextlib.suppress(OSError):
                if stat.S_ISREG(os.lstat(path).st_mode):
                    yield os.path.relpath(path, folder)


@contextlib.contextmanager
def open_regular(folder: str, path: str) -> Iterator[BinaryIO]:
    """Opens a file without following a link in its last part, and only if it is a regular file."""
    fd = os.open(os.path.join(folder, path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError("it is not a regular file")
        yield file


def line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"
