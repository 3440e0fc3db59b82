"""What can go wrong with datasets, as errors that the API renders and the command line prints.

NotFound
+-- UnknownBenchmark      no pack of that name
+-- UnknownProblem        the pack has no problem of that id
Invalid
+-- TooFewProblems        the selection asks for more than there is
+-- BadSource             the file cannot be made into a pack; nothing was written
+-- DownloadFailed        the file could not be fetched, or is not the one expected
ServerError
+-- PackDamaged           a pack on disk is not what was written; build it again
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
    """`available` is how many problems match the selection."""

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
