"""Which model calls a run may make: one for each item of its plan. A runner that was taken over cannot invent others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from urllib.parse import unquote

from sqlmodel import Session

from orchestrator.runs import queries as run_queries
from orchestrator.runs.plan import item_positions
from orchestrator.runs.tables import ContainerRun
from runner.contract.evals import EvalTask, generation_key
from runner.contract.run_spec import RunKind, call_key

Positions = dict[tuple[str, str, int], int]

GENERATION_KEYS = frozenset(generation_key(turn) for turn in range(EvalTask().repairs + 1))


class PositionCache:
    """Where each item of a run stands in its plan. Plans never change: the newest few are kept, for all threads."""

    def __init__(self, size: int = 64) -> None:
        self._size = size
        self._known: dict[str, Positions] = {}
        self._lock = threading.Lock()

    def of(self, run: ContainerRun) -> Positions:
        return self.by_id(run.id, lambda: run)

    def by_id(self, run_id: str, load: Callable[[], ContainerRun | None]) -> Positions:
        with self._lock:
            positions = self._known.pop(run_id, None)
            if positions is None:
                run = load()
                positions = {} if run is None else item_positions(run)
            self._known[run_id] = positions
            while len(self._known) > self._size:
                del self._known[next(iter(self._known))]
            return positions


def planned_calls(positions: PositionCache, session: Session, run_id: str, kind: str) -> Callable[[str], bool]:
    """Whether a key is one of the run's. Grading, commands and the execution of evals ask no model."""
    if kind == RunKind.EVAL_GENERATE:
        return GENERATION_KEYS.__contains__
    if kind != RunKind.BENCHMARK:
        return lambda key: False
    planned = positions.by_id(run_id, lambda: run_queries.get(session, run_id))
    return lambda key: _item_of(key) in planned


def _item_of(key: str) -> tuple[str, str, int] | None:
    """The item whose call has this key."""
    item, _, rest = unquote(key).partition("/")
    problem_id, *numbers = rest.rsplit("/", 2)
    if len(numbers) != 2 or not (numbers[0].isascii() and numbers[0].isdecimal() and len(numbers[0]) < 10):
        return None
    sample_index = int(numbers[0])
    return (item, problem_id, sample_index) if call_key(item, problem_id, sample_index) == key else None
