"""Makes problems from rows in a child process with limits on memory and time: templates are a user's program.

The child has no environment, no open files but its pipes, and runs as nobody where the service is root. One row at a time
goes in and one problem comes out, so memory stays bounded whatever the number of rows.
"""

from __future__ import annotations

import json
import os
import resource
import select
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from orchestrator.benchmarks.definition import Definition
from orchestrator.datasets.errors import BadSource

ROW_S = 10.0
START_S = 60.0
MEMORY_BYTES = 1 << 30
NOBODY = 65534
ROOT = Path(__file__).parents[2]


class Renderer:
    """Asks the child; created by `rendering`."""

    def __init__(self, child: subprocess.Popen[bytes], row_s: float) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        self._child, self._row_s = child, row_s
        self._in: IO[bytes] = child.stdin
        self._out: IO[bytes] = child.stdout

    def start(self, definition: Definition, examples: Sequence[Mapping[str, Any]]) -> None:
        reply = self._ask({"definition": definition.model_dump(mode="json"), "examples": examples}, START_S, "the start")
        if "why" in reply:
            raise BadSource(f"The benchmark cannot be built: {reply['why']}.")

    def problem(self, position: str, number: int, row: Mapping[str, Any]) -> dict[str, Any]:
        """`entry` and `record` of the problem, or `why` there is none."""
        return self._ask({"number": number, "row": row}, self._row_s, position)

    def _ask(self, request: dict[str, Any], within_s: float, what: str) -> dict[str, Any]:
        try:
            self._in.write(json.dumps(request).encode() + b"\n")
            self._in.flush()
            ready, _, _ = select.select([self._out], [], [], within_s)
            line = self._out.readline() if ready else b""
        except BrokenPipeError:
            ready, line = [self._out], b""
        if not ready:
            raise BadSource(f"The templates took longer than {within_s:g} s on {what}; nothing was built. Simplify them.")
        if not line:
            raise BadSource(
                f"The templates could not be filled in on {what}: the process that does it ended "
                f"(most likely it needed more than {MEMORY_BYTES >> 20} MiB); nothing was built. Simplify them."
            )
        reply: dict[str, Any] = json.loads(line)
        return reply


@contextmanager
def rendering(
    definition: Definition, examples: Sequence[Mapping[str, Any]] = (), *, row_s: float = ROW_S
) -> Iterator[Renderer]:
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "orchestrator.benchmarks.building.rendering_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=_limit,  # noqa: PLW1509 - the child only sets limits between fork and exec
        **_as_nobody(),
    )
    try:
        renderer = Renderer(child, row_s)
        renderer.start(definition, examples)
        yield renderer
    finally:
        child.kill()
        child.communicate()


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _as_nobody() -> dict[str, Any]:
    """Empty if the service is not root, or if nobody could not enter the folders of the interpreter."""
    if os.geteuid() != 0 or not all(_open_to_all(Path(path)) for path in (sys.executable, os.__file__, __file__)):
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def _open_to_all(path: Path) -> bool:
    path = path.resolve()
    return path.stat().st_mode & stat.S_IROTH > 0 and all(up.stat().st_mode & stat.S_IXOTH for up in path.parents)
