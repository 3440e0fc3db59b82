"""Errors of datasets, which the API renders and the command line prints.

NotFound
+-- UnknownBenchmark      there is no pack of that name
+-- UnknownProblem        the pack has no problem with that id
Invalid
+-- TooFewProblems        the selection asks for more problems than match
+-- BadSource             no pack can be built from the file; nothing was written
+-- DownloadFailed        the file could not be downloaded, or is not the expected one
ServerError
+-- PackDamaged           a pack on disk differs from what was written; build it again
"""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.errors import Invalid, NotFound, ServerError


class UnknownBenchmark(NotFound):
    def __init__(self, name: str, known: Iterable[str]) -> None:
        there = ", ".join(sorted(known)) or "none yet"
        super().__init__(f"There is no benchmark {name!r} here. Available: {there}. `benchyard datasets add` adds one.")


class UnknownProblem(NotFound):
    def __init__(self, benchmark: str, missing: list[str]) -> None:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        super().__init__(f"Benchmark {benchmark!r} has no problem {shown}. Check the ids against its list of problems.")


class TooFewProblems(Invalid):
    """`available` is the number of problems that match the selection."""

    def __init__(self, benchmark: str, asked: int, available: int) -> None:
        if available:
            detail = (
                f"{asked} problems of {benchmark!r} were asked for, but only {available} match. "
                f"Ask for {available} or fewer."
            )
        else:
            detail = f"No problem of {benchmark!r} matches. Widen the date window, the difficulty, the platform or the ids."
        super().__init__(detail, available=available)
        self.available = available


class BadSource(Invalid):
    title = "Not a dataset"


class DownloadFailed(Invalid):
    title = "Download failed"


class PackDamaged(ServerError):
    title = "Dataset damaged"
