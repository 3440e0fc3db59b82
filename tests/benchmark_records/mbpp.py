"""Tasks in MBPP's three layouts: the full set, the sanitized one, and EvalPlus' MBPP+."""

from __future__ import annotations

from typing import Any


def _full(number: int, text: str, code: str, *tests: str, setup: str = "") -> dict[str, Any]:
    return {
        "text": text,
        "code": code.replace("\n", "\r\n"),
        "task_id": number,
        "test_setup_code": setup,
        "test_list": list(tests),
        "challenge_test_list": [],
    }


FULL: list[dict[str, Any]] = [
    _full(3, "Write a function to say whether a number is odd.", "def is_odd(n): \n\treturn n % 2 == 1",
          "assert is_odd(3) == True", "assert is_odd(4) == False", "assert is_odd(-1) == True"),
    _full(120, "Write a function to find the elements of both tuples.",
          "def both(a, b):\n  res = tuple(set(a) & set(b))\n  return (res) ",
          "assert set(both((3, 4), (4, 9))) == set((4,))", "assert both((1,), (2,)) == ()"),
    _full(121, "Write a function to add the values of a pair of the class Pair.",
          "class Pair(object):\n    def __init__(self, a, b):\n        self.a, self.b = a, b\n"
          "def total(pair):\n    return pair.a + pair.b",
          "assert total(small) == 3", "assert total(large) == 30", setup="small = Pair(1, 2)\nlarge = Pair(10, 20)"),
    _full(122, "Write a function that checks whether a text is the same backwards.",
          "def check(text):\n    return text == text[::-1]",
          'assert check("abba") == True', 'assert check("ab") == False', 'assert check("") == True'),
    _full(123, "Write a function to sum two lists.", "def sum(a, b):\n    return [x + y for x, y in zip(a, b)]",
          "assert sum([1], [2]) == [3]", "assert sum([], []) == []"),
    _full(520, "Write a function to find the root of a number.", "import math\ndef root(x):\n    return math.sqrt(x)",
          "assert root(4) == 2", "assert abs(root(2) - 1.4142135623) < 1e-9"),
    _full(700, "Write a function to count the words of a text.",
          "import re\ndef words(t):\n    return len(re.findall(r'\\w+', t))",
          'assert words("a b") == 2', 'assert words("") == 0', 'assert words("one, two; three") == 3'),
]  # fmt: skip
SPLITS = {"prompt": 1, "test": 4, "validation": 1, "train": 1}
"""How many of them are in each split, which MBPP gives by the number of a task."""

SANITIZED: list[dict[str, Any]] = [
    {
        "source_file": "Made for the tests.ipynb",
        "task_id": 600,
        "prompt": "Write a function to find the area of a circle.",
        "code": "import math\ndef area(r):\n  return math.pi * r * r",
        "test_imports": ["import math"],
        "test_list": ["assert math.isclose(area(1), math.pi)", "assert math.isclose(area(2), 12.566370614359172)"],
    },
    {
        "source_file": "Made for the tests.ipynb",
        "task_id": 601,
        "prompt": "Write a python function to reverse a list.",
        "code": "def turned(items):\n  def last(k):\n    return items[-1 - k]\n  return list(map(last, range(len(items))))",
        "test_imports": [],
        "test_list": ["assert turned([1, 2]) == [2, 1]", "assert turned([]) == []"],
    },
]

ANSWERS: dict[str, list[tuple[str, bool]]] = {
    "MBPP/3": [
        ("def is_odd(n):\n    return bool(n & 1)", True),
        ("def is_odd(n):\n    return n // 2", False),
    ],
    "MBPP/120": [
        ("def both(a, b):\n    return tuple(x for x in a if x in b)", True),
        ("def both(a, b):\n    return [x for x in a if x in b]", False),
        ("def shared(a, b):\n    return tuple(x for x in a if x in b)", False),
    ],
    "MBPP/121": [
        (
            "class Pair:\n    def __init__(self, *both):\n        self.both = both\ndef total(p):\n    return sum(p.both)",
            True,
        ),
        ("def total(pair):\n    return pair.a + pair.b", False),
    ],
    "MBPP/122": [
        ("def check(text):\n    return all(a == b for a, b in zip(text, reversed(text)))", True),
        ("def check(text):\n    return True", False),
        ("def check(text):\n    print(text == text[::-1])", False),
    ],
    "MBPP/123": [
        ("def sum(a, b):\n    return list(map(lambda x, y: x + y, a, b))", True),
        ("def add(a, b):\n    return [x + y for x, y in zip(a, b)]", False),
    ],
    "MBPP/520": [
        ("def root(x):\n    return x ** 0.5", True),
        ("def root(x):\n    return x / 2", False),
    ],
    "MBPP/700": [
        ("def words(t):\n    return len(t.replace(',', ' ').replace(';', ' ').split())", True),
        ("def words(t):\n    raise ValueError(t)", False),
        ("def words(t):\n    import sys\n    sys.exit(0)", False),
    ],
}
"""By task: programs, and whether each is right."""


PLUS: list[dict[str, Any]] = [
    {
        "task_id": "Mbpp/63",
        "prompt": '"""\nWrite a function to find the widest of pairs.\nassert widest([(3, 5), (1, 7)]) == 6\n"""\n',
        "entry_point": "widest",
        "canonical_solution": "def widest(pairs):\n    return max(abs(a - b) for a, b in pairs)\n",
        "base_input": [[[[3, 5], [1, 7]]]],
        "plus_input": [[[[1, 1]]], [[[4, -4], [2, 9], [0, 0]]]],
        "atol": 0,
        "contract": "",
        "assertion": "assert widest([(3, 5), (1, 7)]) == 6\n",
    },
    {
        "task_id": "Mbpp/701",
        "prompt": '"""\nWrite a function to divide.\nassert ratio(1, 2) == 0.5\n"""\n',
        "entry_point": "ratio",
        "canonical_solution": "def ratio(a, b):\n    return a / b\n",
        "base_input": [[1, 2]],
        "plus_input": [[1, 3], [-7, 9]],
        "atol": 1e-4,
        "contract": "",
    },
]

PLUS_ANSWERS: dict[str, list[tuple[str, bool]]] = {
    "MBPP/63": [
        ("def widest(pairs):\n    assert type(pairs[0]) is tuple\n    return max(max(p) - min(p) for p in pairs)", True),
        ("def widest(pairs):\n    return max(b - a for a, b in pairs)", False),  # the base input passes
    ],
    "MBPP/701": [
        ("def ratio(a, b):\n    return round(a / b, 5)", True),
        ("def ratio(a, b):\n    return round(a / b, 2)", False),
    ],
}
