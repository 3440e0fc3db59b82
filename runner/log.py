"""The runner's own log: one JSON line per event on standard error, each with an `action` word and what was bound.

Standard library only. Lines are cut, because the engine keeps only the last part of a container's log.
"""

from __future__ import annotations

import json
import sys
import time

MAX_TEXT = 500


class Log:
    """Writes lines; `bind` gives a log that adds fields to each."""

    def __init__(self, **bound: object) -> None:
        self._bound = bound

    def bind(self, **more: object) -> Log:
        return Log(**{**self._bound, **more})

    def __call__(self, action: str, **facts: object) -> None:
        line = {"time": round(time.time(), 3), "action": action, **self._bound, **facts}
        cut = {key: value[:MAX_TEXT] if isinstance(value, str) else value for key, value in line.items()}
        sys.stderr.write(json.dumps(cut, default=lambda value: str(value)[:MAX_TEXT]) + "\n")
        sys.stderr.flush()
