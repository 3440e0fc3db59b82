"""Errors that end a command, and their exit codes, which are part of the interface: docs/cli.md lists them.

CliError              1  the command could not be carried out
+-- BadUsage          2  the command line is wrong
+-- RunFailed         3  a run that was waited for failed
+-- RunCancelled      4  a run that was waited for was cancelled
+-- NotReachable      5  no service answers
+-- GateFailed        6  a run completed, but not as well as the command demands
+-- Refused           1  the service answered with a problem
"""

from __future__ import annotations

from typing import ClassVar

INTERRUPTED = 130


class CliError(Exception):
    """Ends the command with one sentence on standard error."""

    exit_code: ClassVar[int] = 1


class BadUsage(CliError):
    exit_code = 2


class RunFailed(CliError):
    exit_code = 3


class RunCancelled(CliError):
    exit_code = 4


class NotReachable(CliError):
    exit_code = 5

    def __init__(self, url: str, why: str = "") -> None:
        more = f" ({why})" if why else ""
        super().__init__(f"No Benchyard answers at {url}{more}. Start it with `benchyard up`.")


class GateFailed(CliError):
    exit_code = 6


class Refused(CliError):
    """The service's own error message and status."""

    def __init__(self, detail: str, status: int, code: str = "") -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
