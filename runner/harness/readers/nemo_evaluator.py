"""NeMo Evaluator: `results.yml`, which every harness of it ends with, or the same as `results.json`.

The file has no samples, only scores of tasks: `results.tasks.<task>.metrics.<metric>.scores.<score>.value`, with `stats`
such as `count` and `stderr` beside the value. So an item is a whole task, its value is the score of the task; the first
metric counts, with its score `micro`, else with its first one. Other scores are in the reason. Without tasks, groups are
the items. A half-written file may look like a whole one, so nothing is read before the harness has ended. In YAML, a few
aliases can stand for gigabytes: whatever is walked through is counted.
"""

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from runner.contract.harness import MAX_HARNESS_ITEMS
from runner.harness.readers.item import HarnessItem, Progress, Unreadable, number_of

MAX_BYTES = 8 << 20
MAX_DEPTH = 50
MAX_SCORES = 1_000
"""Of one task."""
USUAL = "micro"
"""The mean over samples, where a metric has several scores."""
STATS = ("count", "stderr", "stddev", "min", "max")


def read(file: BinaryIO, name: str, progress: Progress) -> Iterator[HarnessItem]:
    file_name = name.rsplit("/", 1)[-1]
    if not progress.final or not file_name.startswith("results."):  # others say nothing about scores
        return
    content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise Unreadable(f"it is larger than {MAX_BYTES} bytes")
    document = _mapping(_parsed(content, is_json=file_name.endswith(".json")))
    results = _mapping(document["results"]) if "results" in document else document
    tasks = dict(_tasks(results.get("tasks"))) or dict(_groups(results.get("groups")))
    if not tasks:
        raise Unreadable("it has no scores of tasks or groups; results of NeMo Evaluator have results.tasks")
    progress.expected = len(tasks)
    for task, metrics in tasks.items():
        yield _item(task, metrics)


def _parsed(content: bytes, *, is_json: bool) -> Any:
    try:
        text = content.decode("utf-8-sig")
        return json.loads(text) if is_json else _yaml(text)
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except Unreadable:
        raise
    except (ValueError, TypeError) as error:
        raise Unreadable(f"it is not {'JSON' if is_json else 'YAML'}: {' '.join(str(error).split())[:300]}") from None


def _yaml(text: str) -> Any:
    """Refuses what costs far more than the text's length: deep nesting, and keys that are merged from aliases."""
    import yaml  # no other format needs it

    loader, depth = getattr(yaml, "CSafeLoader", yaml.SafeLoader), 0
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif isinstance(event, yaml.ScalarEvent) and event.value == "<<":
                raise Unreadable("it merges keys (<<), which results do not need")
            if depth > MAX_DEPTH:
                raise Unreadable(f"it is nested more than {MAX_DEPTH} deep")
        return yaml.load(text, Loader=loader)  # noqa: S506  (a safe one)
    except yaml.YAMLError as error:
        raise ValueError(error) from None


def _tasks(tasks: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, task in _mapping(tasks).items():
        if metrics := _mapping(_mapping(task).get("metrics")):
            yield str(name), metrics


def _groups(groups: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """A group with groups in it stands for these: its own scores repeat theirs."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), groups)]
    seen = 0
    while waiting:
        above, members = waiting.pop()
        for name, group in _mapping(members).items():
            seen += 1
            if seen > MAX_HARNESS_ITEMS or len(above) > MAX_DEPTH:
                raise Unreadable("it has too many groups, or groups that contain themselves")
            path = (*above, str(name))
            inner, metrics = _mapping(_mapping(group).get("groups")), _mapping(_mapping(group).get("metrics"))
            if inner:
                waiting.append((path, inner))
            elif metrics:
                yield "/".join(path), metrics


def _item(task: str, metrics: dict[str, Any]) -> HarnessItem:
    scores: dict[tuple[str, str], dict[str, Any]] = {}
    for metric, result in metrics.items():
        named = _mapping(_mapping(result).get("scores"))
        if len(scores) + len(named) > MAX_SCORES:
            raise Unreadable(f"{task[:100]} has more than {MAX_SCORES} scores")
        for name in sorted(named, key=lambda name: name != USUAL):  # keeps the order of the others
            scores[str(metric), str(name)] = _mapping(named[name])
    if not scores:
        return HarnessItem(id=task, score=None, reason="the task has no score")
    (metric, name), counting = next(iter(scores.items()))
    value = number_of(counting.get("value"))
    lines = [_line(*key, score) for key, score in scores.items()]
    if value is None:
        lines.insert(0, f"{metric}/{name} is not a number, so it does not count")
    return HarnessItem(id=task, score=value, reason="\n".join(lines))


def _line(metric: str, name: str, score: dict[str, Any]) -> str:
    stats = _mapping(score.get("stats"))
    known = [f"{stat} {number:g}" for stat in STATS if (number := number_of(stats.get(stat))) is not None]
    value = number_of(score.get("value"))
    text = type(score.get("value")).__name__ if value is None else f"{value:g}"
    return f"{metric}/{name}: {text}" + (f" ({', '.join(known)})" if known else "")


def _mapping(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}
