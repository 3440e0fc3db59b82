"""Prompts for writing an eval: the contract, the criterion, examples, and the faults of the last answer. Pure.

The model sees training traces only, without ids.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from runner.contract.evals import Label
from runner.evals.trial import MARK_TEXT, Subject
from runner.llm.client import Prompt

VERSION = "eval-1"
EXAMPLE_CHARS, LEAST_CHARS = 4000, 800
ALL_CHARS = 120_000
SHOWN_MISTAKES = 8
SHOWN_DISPUTES = 20
SYSTEM = (
    "You write small, deterministic Python functions that judge the traces of an application. "
    "You answer with one Python code block and nothing else."
)
TASK = """\
Write a Python function that decides whether a trace meets this criterion:

{criterion}

The contract:

    def evaluate(trace: dict) -> dict:
        return {{"passed": bool, "score": float, "reason": str}}

- `trace` has `input` and `output` (text or any JSON value), `steps` (a list of dicts, may be empty), `metadata` (a dict),
  and `id` (random, means nothing). Any of them may be missing or None in a trace that you have not seen: never raise.
- `passed` says whether the trace meets the criterion, `score` is from 0 (bad) to 1 (good), `reason` is one short sentence.
- The same trace must always give the same result: no chance, no clock, nothing kept between calls.
- One module, standard library only, and of it only: {allowed}.
- No files, no network. Each call has 5 seconds and 50 MB.
- Judge by what makes a trace good or bad. Do not list the examples: other traces, which you do not see, are what counts.

Traces that people found good ({good_count}):
{good}

Traces that people found bad ({bad_count}):
{bad}
"""
DISPUTED = """
An earlier eval was wrong about these. People have looked again and hold to what they said:
{lines}
"""
REPAIR = """\

Your last answer:

```python
{code}
```

It cannot be used as it is: {problem}
Write the whole function again, repaired.
"""


@dataclass(frozen=True)
class Training:
    subject: Subject
    label: Label
    disputed: str = ""
    """An earlier eval's wrong verdict on it."""


@dataclass(frozen=True)
class Fault:
    """What is reported back to the model."""

    code: str
    problem: str


def first_prompt(criterion: str, training: Sequence[Training], allowed: Sequence[str]) -> Prompt:
    """Shows all training traces if they fit, otherwise some of each label, spread over the whole range."""
    room = min(EXAMPLE_CHARS, max(LEAST_CHARS, ALL_CHARS // max(len(training), 1)))
    own = {label: [example.subject for example in training if example.label is label] for label in Label}
    most = ALL_CHARS // (2 * room)
    good, bad = (
        "\n".join(shown_text(subject, room) for subject in _spread(own[label], most))
        for label in (Label.POSITIVE, Label.NEGATIVE)
    )
    text = TASK.format(
        criterion=criterion.strip(),
        allowed=", ".join(allowed),
        good_count=len(own[Label.POSITIVE]),
        good=good,
        bad_count=len(own[Label.NEGATIVE]),
        bad=bad,
    )
    return Prompt(SYSTEM, text + _disputed(training), VERSION)


def _disputed(training: Sequence[Training]) -> str:
    lines = [
        f"- people say {'good' if example.label is Label.POSITIVE else 'bad'}, it said {example.disputed[:300]}: "
        f"{shown_text(example.subject, LEAST_CHARS)}"
        for example in training
        if example.disputed
    ]
    return DISPUTED.format(lines="\n".join(lines[:SHOWN_DISPUTES])) if lines else ""


def _spread(subjects: Sequence[Subject], most: int) -> list[Subject]:
    if len(subjects) <= most:
        return list(subjects)
    return [subjects[index * len(subjects) // most] for index in range(most)]


def repair_prompt(first: Prompt, fault: Fault) -> Prompt:
    return Prompt(SYSTEM, first.user + REPAIR.format(code=fault.code, problem=fault.problem), VERSION)


def shown_text(subject: Subject, room: int) -> str:
    """Returns a trace as one line of JSON; if it is too long only input and output remain, and those are cut last."""
    trace = json.loads(subject.text.replace(MARK_TEXT, "..."))
    text = json.dumps(trace, ensure_ascii=False)
    if len(text) > room:
        text = json.dumps({name: trace.get(name) for name in ("input", "output")}, ensure_ascii=False)
    return text if len(text) <= room else text[:room] + " ... (cut)"


def mistakes_text(wrong: Sequence[tuple[Training, str]], right: int, tested: int) -> str:
    """Describes, for the model, the training traces on which its eval disagrees with people."""
    lines = [
        f"- people say {'good' if example.label is Label.POSITIVE else 'bad'}, it says {verdict}: "
        f"{shown_text(example.subject, 1500)}"
        for example, verdict in wrong[:SHOWN_MISTAKES]
    ]
    more = f"\n- and {len(wrong) - SHOWN_MISTAKES} more" if len(wrong) > SHOWN_MISTAKES else ""
    return f"it agrees with people on {right} of {tested} traces only. Where it does not:\n" + "\n".join(lines) + more
