"""Honest programs: all of them must pass, as they would under plain `python solution.py`."""

from .idioms import IDIOMS
from .streams import STREAMS

ORDINARY = [*STREAMS, *IDIOMS]
