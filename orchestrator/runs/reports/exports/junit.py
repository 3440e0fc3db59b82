"""Results as JUnit XML: a suite per benchmark, a test case per item. Pure: rows in, text out.

An answer that does not pass is a failure; an item that provider or infrastructure broke is an error. The text of either is
what the result says of it and its first failing test, as on the page of the item.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.runs.tables import ContainerRun, ItemRow
from runner.contract.events import NOT_THE_MODELS_FAULT, Outcome

EXCERPT_CHARS = 4_000
TAIL = "</testsuites>\n"
SUITE_TAIL = "</testsuite>\n"
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def head(run: ContainerRun, model: str | None, counts: Mapping[str, Mapping[str, int]]) -> str:
    """The beginning of the document; `counts` has the number of items by benchmark and outcome."""
    total: dict[str, int] = {outcome: sum(part.get(outcome, 0) for part in counts.values()) for outcome in Outcome}
    name = f"{model or run.kind} on {', '.join(run.benchmarks)}"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites{_attributes(name=name, **_numbers(total))}>\n'


def suite_head(run: ContainerRun, model: str | None, benchmark: str, counts: Mapping[str, int]) -> str:
    started = run.started_at or run.created_at
    digests = {part.name: part.pack_digest for part in run.task.benchmarks}
    facts = {"run_id": run.id, "model": model, "pack_digest": digests.get(benchmark), "status": run.status, "seed": run.seed}
    attributes = _attributes(name=benchmark, **_numbers(counts), timestamp=started.strftime("%Y-%m-%dT%H:%M:%S"))
    return f"<testsuite{attributes}>\n{_properties(facts)}"


def cases(rows: Iterable[ItemRow]) -> str:
    return "".join(_case(row) for row in rows)


def _case(row: ItemRow) -> str:
    calls = row.data.get("calls") or []
    time_s = row.wall_s + sum(float(call.get("latency_s") or 0) for call in calls)
    name = row.problem_id if not row.sample_index else f"{row.problem_id} [sample {row.sample_index}]"
    attributes = _attributes(classname=row.benchmark, name=name, time=f"{time_s:.3f}")
    facts = {"score": row.score, "parity_outcome": row.parity_outcome, "fragile": row.fragile or None}
    inside = _properties(facts) + _verdict(row)
    return f"<testcase{attributes}>{inside}</testcase>\n" if inside else f"<testcase{attributes}/>\n"


def _verdict(row: ItemRow) -> str:
    if row.outcome == Outcome.PASSED:
        return ""
    tag = "error" if row.outcome in NOT_THE_MODELS_FAULT else "failure"
    message = row.detail.splitlines()[0][:300] if row.detail else row.outcome.replace("_", " ")
    return f"<{tag}{_attributes(type=row.outcome, message=message)}>{_text(_explanation(row))}</{tag}>"


def _explanation(row: ItemRow) -> str:
    parts = [row.detail]
    if row.tests_total:
        parts.append(f"{row.tests_passed} of {row.tests_total} tests passed")
    failing: dict[str, Any] = next(
        (test for test in row.data.get("tests") or [] if test.get("outcome") != Outcome.PASSED), {}
    )
    parts += [f"{name}: {failing[name]}" for name in ("input", "expected", "got", "stderr") if failing.get(name)]
    repeat = row.data.get("repeat") or {}
    parts.append(str(repeat.get("output") or ""))
    return "\n".join(part for part in parts if part)[:EXCERPT_CHARS]


def _numbers(counts: Mapping[str, int]) -> dict[str, Any]:
    errors = sum(counts.get(outcome, 0) for outcome in NOT_THE_MODELS_FAULT)
    total = sum(counts.values())
    return {"tests": total, "failures": total - errors - counts.get(Outcome.PASSED, 0), "errors": errors}


def _properties(facts: Mapping[str, Any]) -> str:
    known = {name: value for name, value in facts.items() if value is not None}
    lines = "".join(f"<property{_attributes(name=name, value=value)}/>" for name, value in known.items())
    return f"<properties>{lines}</properties>" if lines else ""


def _attributes(**values: Any) -> str:
    return "".join(f' {name}="{_attribute(str(value))}"' for name, value in values.items())


def _attribute(text: str) -> str:
    return _text(text).replace("\n", "&#10;").replace("\t", "&#9;")


def _text(text: str) -> str:
    """The text as the content of an element; characters that XML cannot hold are replaced."""
    plain = _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
    plain = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    return plain.replace("\r", "&#13;")
