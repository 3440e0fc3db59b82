"""Why the service cannot start, as one sentence for the operator instead of a traceback, and what its log says at that
time to the command that started it. A leaf.

CannotStart           1  something must be fixed first
+-- BadConfiguration  2  a setting, or a file named by one, cannot be used
"""

from __future__ import annotations

from typing import ClassVar

RUNNER_LISTENER_OPEN = "runner_listener_open"
"""`action` of the log entry: runners can reach the service."""
RUNNER_LISTENER_FAILED = "runner_listener_failed"
"""`action` of the log entry whose `error` says why they cannot."""


class CannotStart(Exception):
    """The message says what is wrong and what to do; `exit_code` is the process's exit code."""

    exit_code: ClassVar[int] = 1


class BadConfiguration(CannotStart):
    exit_code = 2
