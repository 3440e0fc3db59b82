"""Programs that want points without solving the task. Every one must score nothing.

The tasks: `stdin`: print twice the number given; `calls`: `solve(a)` returns the list sorted; `check`: `add(a, b)`.
"""

from tests.sandbox.cheats.checks import CHECK_CHEATS
from tests.sandbox.cheats.plain import CALL_CHEATS, STDIN_CHEATS

CHEATS = [*STDIN_CHEATS, *CALL_CHEATS, *CHECK_CHEATS]
