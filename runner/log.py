"""The runner's own log: one JSON line per event on standard error, each with an `action` and the bound fields.

Standard library only. Long lines are cut, because the engine keeps only the end of a container's log. The newest lines are
also kept in memory and uploaded as a file of the run.
"""

import json
import sys
import time
from collections import deque

MAX_TEXT = 500
KEPT_LINES = 2000


class Log:
    """Writes log lines. `bind` returns a log that adds fields to each line and shares the kept lines."""

    def __init__(self, **bound: object) -> None:
        self._bound = bound
        self._kept: deque[str] = deque(maxlen=KEPT_LINES)

    def bind(self, **more: object) -> "Log":
        other = Log(**{**self._bound, **more})
        other._kept = self._kept
        return other

    def kept(self) -> bytes:
        """Returns the newest lines."""
        return "".join(self._kept).encode("utf-8", "replace")

    def __call__(self, action: str, **facts: object) -> None:
        line = {"time": round(time.time(), 3), "action": action, **self._bound, **facts}
        cut = {key: value[:MAX_TEXT] if isinstance(value, str) else value for key, value in line.items()}
        text = json.dumps(cut, default=lambda value: str(value)[:MAX_TEXT]) + "\n"
        self._kept.append(text)
        sys.stderr.write(text)
        sys.stderr.flush()
