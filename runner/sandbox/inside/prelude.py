"""The imports that LiveCodeBench puts in front of every solution, as source code."""

import sys
from functools import cache
from typing import Any

PRELUDE = """\
from string import *
from re import *
from datetime import *
from collections import *
from heapq import *
from bisect import *
from copy import *
from math import *
from random import *
from statistics import *
from itertools import *
from functools import *
from operator import *
from io import *
from sys import *
from json import *
from builtins import *
from typing import *
import string
import re
import datetime
import collections
import heapq
import bisect
import copy
import math
import random
import statistics
import itertools
import functools
import operator
import io
import sys
import json
sys.setrecursionlimit(50000)
"""

RECURSION_LIMIT = 50_000


@cache
def namespace() -> dict[str, Any]:
    """Returns the names that the prelude defines; it is executed once, then copied into each program's globals."""
    before = sys.getrecursionlimit()
    scope: dict[str, Any] = {}
    exec(PRELUDE, scope)  # noqa: S102
    sys.setrecursionlimit(before)
    for name in ("__builtins__", "stdin", "stdout", "stderr"):
        scope.pop(name, None)
    return scope
