"""Every search over text that a model or a stranger wrote takes time in proportion to the text.

Nothing here looks at the clock: a search is cut off when it has used many times the processor time that a linear one needs.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.dashboard.rendering.highlight import highlight
from orchestrator.dashboard.texts import visible
from orchestrator.http.audit_trail import without_secrets
from runner.benchmarks.humaneval import whole_program
from runner.benchmarks.livecodebench import METHOD
from runner.commands.figures import figures_in
from runner.contract.parsing import parse
from runner.contract.rules.evals import problem_of
from runner.grading.verdict import same_output
from runner.reporting.truncation import cut
from runner.rules.boxed_answer import extract_boxed
from runner.rules.extraction import MAX_TEXT_CHARS, extract_code
from runner.rules.letter_answer import extract_letter
from runner.rules.number_answer import extract_number
from tests.benchmark_records.mmlu_pro_published import published_letter

CHARS = 300_000
CPU_S = 30.0
"""A linear search needs a tenth of a second; a quadratic one many minutes."""
SEARCHES: dict[str, Callable[[str], Any]] = {
    "extract_code": extract_code,
    "extract_code with a function": lambda text: extract_code(text, "solve"),
    "extract_number": extract_number,
    "extract_letter": extract_letter,
    "extract_boxed": extract_boxed,
    "published_letter": published_letter,
    "whole_program": lambda text: whole_program("def solve(x):\n", "solve", text),
    "starter code": METHOD.search,
    "problem_of": problem_of,
    "problem_of the beginning": lambda text: problem_of(text[:50_000]),
    "figures_in": lambda text: figures_in(text, []),
    "same_output": lambda text: same_output(text, text + "x"),
    "cut": lambda text: cut(text, 1000),
    "highlight": lambda text: highlight(visible(text[:60_000])),
    "without_secrets": without_secrets,
}
F = "```"
BLOCKS = [
    "\n",
    "\r\n",
    " ",
    "\t",
    "\f",
    "\v",
    "\xa0",
    "\u2028",
    "a",
    "A",
    "Z1",
    "_",
    "1",
    ",",
    ".",
    "-",
    "(",
    ")",
    "[",
    "{",
    "}",
    "\\",
    "'",
    '"',
    "'''",
    '"""',
    "#",
    "####",
    "$",
    "*",
    "=",
    "==",
    ":",
    ";",
    "@",
    "<",
    ">",
    "~~~",
    "`",
    F,
    f"{F}python\n",
    f"\n{F}\n",
    "def ",
    "def solve",
    "async ",
    "class ",
    "import a",
    "lambda: ",
    "not ",
    "<think>",
    "</think>",
    "<thinking>",
    "</thinking>",
    "answer",
    "Answer: ",
    "answer is ",
    "the answer is (",
    "\\boxed{",
    "\\text{",
    "1,000",
    "0.5",
    "\x1b[",
    "\x1b]",
    "\x07",
    "by_",
    "sk-",
    "\ud800",
    "\x00",
    "٣",
    "−",
]
KNOWN = {
    "empty lines in a block": (f"{F}python\n", "\n", f"{F}\n"),
    "blank lines in a block": (f"{F}python\n", " \n", f"{F}\n"),
    "empty lines, no block": ("", "\n", ""),
    "blanks in a block": (f"{F}python\n", " ", f"\n{F}\n"),
    "definitions of something else": (f"{F}python\n", "def \n", f"{F}\n"),
    "async and nothing": (f"{F}python\n", "async \n", f"{F}\n"),
    "a dotted import": ("import a", ".a", ""),
    "a dotted import with blanks": ("import a", " . a", ""),
    "a dotted import over lines": ("import a", ".\\\na", ""),
    "open thinking": ("", "<think>", ""),
    "closed thinking": ("", "</think>", ""),
    "nested thinking": ("", "<think></thinking>", ""),
    "long fences": ("", "`", ""),
    "fences": ("", f"{F}\n", ""),
    "numbers": ("", "1 ", ""),
    "one number": ("", "1", ""),
    "commas": ("1", ",", ""),
    "marks": ("", "#", ""),
    "letters": ("", "A ", ""),
    "labels": ("", "Answer: ", ""),
    "a word": ("", "a", ""),
    "a word with capitals": ("", "aB", ""),
    "escapes": ("", "\x1b[0", ""),
}


@contextmanager
def processor_limit(what: str) -> Iterator[None]:
    """Works inside a search of the `re` module, too: it looks for signals now and then."""

    def expire(*_: object) -> None:
        raise AssertionError(f"{what} used more than {CPU_S:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, expire)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def filled(head: str, middle: str, tail: str, chars: int = CHARS) -> str:
    return head + middle * (chars // len(middle)) + tail


@pytest.mark.parametrize("name", KNOWN)
def test_texts_that_are_known_to_be_hard(name: str) -> None:
    text = filled(*KNOWN[name])
    for search, run in SEARCHES.items():
        with processor_limit(f"{search} of {name}"):
            run(text)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    head=st.lists(st.sampled_from(BLOCKS), max_size=4).map("".join),
    middle=st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=5).map("".join),
    tail=st.lists(st.sampled_from(BLOCKS), max_size=4).map("".join),
)
def test_texts_that_nobody_thought_of(head: str, middle: str, tail: str) -> None:
    text = filled(head, middle, tail)
    for search, run in SEARCHES.items():
        with processor_limit(f"{search} of {head!r} + {middle!r} * n + {tail!r}"):
            run(text)


def test_of_an_endless_text_the_end_is_searched() -> None:
    text = "word " * (3 * MAX_TEXT_CHARS // 5) + f"\n{F}python\nprint(1)\n{F}\n"
    assert extract_code(text).code == "print(1)"
    assert extract_number("1 " * MAX_TEXT_CHARS + "#### 7").code == "7"
    assert extract_letter("x " * MAX_TEXT_CHARS + "The answer is (C).").code == "C"


def test_a_dotted_name_without_end_is_not_parsed() -> None:
    """The interpreter's parser would take gigabytes."""
    for name in ("a" + ".a" * 40_000, "a" + " . a" * 20_000, "a" + ".\\\na" * 20_000):
        with pytest.raises(SyntaxError, match="parts"):
            parse(f"import {name}")
        assert extract_code(f"import {name}").code is None
    numbers = "x = [" + ", ".join("0.5" for _ in range(5000)) + "]"
    assert extract_code(numbers).code == numbers


def test_secrets_are_still_found_in_paths() -> None:
    long = "Ab1" * 20
    assert without_secrets(f"/api/{long}/x") == "/api/[secret]/x"
    assert without_secrets(f"/api/{'a' * 50}/x") == f"/api/{'a' * 50}/x"
    assert without_secrets(f"/{'a' * 50}by_12345678/x") == f"/{'a' * 50}[secret]/x"
    assert without_secrets("/api/sk-12345678") == "/api/[secret]"
