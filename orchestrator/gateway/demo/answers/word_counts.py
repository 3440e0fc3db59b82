"""Writes an eval for traces without a recorded answer, from words that distinguish good from bad examples in the prompt.

It lets the demo do something sensible with a user's own traces. Pure; a real model does better.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

GOOD, BAD = "Traces that people found good", "Traces that people found bad"
KEPT = 80
ANSWER = """I counted which words tell the good examples from the bad ones.

```python
import json
import re

WEIGHTS = {weights}
BIAS = {bias}


def text_of(value):
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def evaluate(trace):
    said = text_of(trace.get("output"))
    words = set("out:" + word for word in re.findall(r"\\w+", said.lower()))
    words |= set("in:" + word for word in re.findall(r"\\w+", text_of(trace.get("input")).lower()))
    words.add("size:" + str(min(len(said) // 20, 20)))
    words |= set("step error" for step in trace.get("steps") or [] if isinstance(step, dict) and step.get("error"))
    found = sorted(word for word in words if word in WEIGHTS)
    total = BIAS + sum(WEIGHTS[word] for word in found)
    strongest = sorted(found, key=lambda word: -abs(WEIGHTS[word]))[:3]
    score = min(1.0, max(0.0, 0.5 + total / 20))
    return {{"passed": total > 0, "score": score, "reason": "words that tell: " + ", ".join(strongest)}}
```"""


def word_count_eval(prompt_text: str) -> str | None:
    """The answer to a prompt with examples of both kinds; None if one kind is missing."""
    good, bad = _examples(prompt_text, GOOD), _examples(prompt_text, BAD)
    if not good or not bad:
        return None
    in_good, in_bad = _counts(good), _counts(bad)
    weights = {
        word: round(math.log((in_good[word] + 0.5) / (len(good) + 1)) - math.log((in_bad[word] + 0.5) / (len(bad) + 1)), 3)
        for word in sorted(in_good.keys() | in_bad.keys())
    }
    strongest = sorted(weights, key=lambda word: (-abs(weights[word]), word))[:KEPT]
    strongest_weights = {word: weights[word] for word in strongest if weights[word]}
    sums = [sum(strongest_weights.get(word, 0.0) for word in _words(trace)) for trace in (*good, *bad)]
    bias = -(min(sums[: len(good)]) + max(sums[len(good) :])) / 2
    return ANSWER.format(weights=json.dumps(strongest_weights), bias=round(bias, 3))


def _examples(prompt_text: str, heading: str) -> list[dict[str, Any]]:
    _, separator, rest = prompt_text.partition(heading)
    examples = []
    for line in rest.split("\n")[1:] if separator else []:
        if not line.startswith("{"):
            break
        try:
            examples.append(json.loads(line))
        except ValueError:
            continue  # the example was truncated
    return examples


def _counts(examples: Iterable[dict[str, Any]]) -> Counter[str]:
    return Counter(word for trace in examples for word in _words(trace))


def _words(trace: dict[str, Any]) -> set[str]:
    output = _text(trace.get("output"))
    words = {f"out:{word}" for word in re.findall(r"\w+", output.lower())}
    words |= {f"in:{word}" for word in re.findall(r"\w+", _text(trace.get("input")).lower())}
    words.add(f"size:{min(len(output) // 20, 20)}")
    steps = trace.get("steps") or []
    return words | {"step error" for step in steps if isinstance(step, dict) and step.get("error")}


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
