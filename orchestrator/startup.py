"""Why the service cannot start, as one sentence for the operator instead of a traceback. A leaf.

CannotStart           1  something here must be put right first
+-- BadConfiguration  2  a setting, or a file that stands for one, cannot be used
"""

from __future__ import annotations

from typing import ClassVar


class CannotStart(Exception):
    """The message says what is wrong and what to do; `exit_code` ends the process."""

    exit_code: ClassVar[int] = 1


class BadConfiguration(CannotStart):
    exit_code = 2
