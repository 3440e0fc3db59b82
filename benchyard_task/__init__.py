"""The types of a benchmark as a Python file: `from benchyard_task import Message, Record, Score`.

The sandbox has a module of this name with the same types; see docs/benchmarks.md.
"""

from runner.benchmarks.task_types import Message, Record, Score

__all__ = ["Message", "Record", "Score"]
