"""Honest programs: all of them must pass, as they would under plain `python solution.py`."""

from tests.sandbox.ordinary.idioms import IDIOMS
from tests.sandbox.ordinary.streams import STREAMS

ORDINARY = [*STREAMS, *IDIOMS]
