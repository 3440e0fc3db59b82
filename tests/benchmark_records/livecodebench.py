"""Problems in LiveCodeBench's release format, private tests packed as there, and programs with both verdicts known."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from dataclasses import dataclass
from typing import Any

from runner.contract.events import Outcome

PASSED, WRONG, TIME, ERROR = Outcome.PASSED, Outcome.WRONG_ANSWER, Outcome.TIME_LIMIT, Outcome.RUNTIME_ERROR


def encoded(tests: Any) -> str:
    """Private tests as the releases hold them: JSON, pickled, compressed, base64."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


def lcb_record(problem_id: str = "p1", **changes: Any) -> dict[str, Any]:
    return {
        "question_title": f"Title of {problem_id}",
        "question_content": "Print the sum.",
        "platform": "atcoder",
        "question_id": problem_id,
        "contest_id": "c1",
        "contest_date": "2024-05-01T00:00:00",
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": json.dumps([{"input": "1 2", "output": "3", "testtype": "stdin"}]),
        "private_test_cases": encoded([{"input": "4 5\n", "output": "9\n", "testtype": "stdin"}]),
        "metadata": "{}",
        **changes,
    }


def _tests(kind: str, *pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"input": given, "output": wanted, "testtype": kind} for given, wanted in pairs]


PROBLEMS: list[dict[str, Any]] = [
    lcb_record(
        "9001_A",
        question_title="A. Sums",
        question_content="A number n, then n lines of two numbers. Print the sum of each line.",
        platform="codeforces",
        contest_id="9001",
        public_test_cases=json.dumps(_tests("stdin", ("2\n1 2\n3 4\n", "3\n7\n"))),
        private_test_cases=encoded(_tests("stdin", ("1\n-5 5\n", "0\n"), ("1\n1000000000000 1\n", "1000000000001\n"))),
    ),
    lcb_record(
        "abc901_b",
        question_content="A text on one line. Print its letters in order, and below how many there are.",
        difficulty="medium",
        public_test_cases=json.dumps(_tests("stdin", ("cab\n", "abc\n3\n"))),
        private_test_cases=encoded(_tests("stdin", ("b\n", "b\n1\n"), ("zza", "azz\n3"), ("ba\n", "ab\n2\n"))),
    ),
    lcb_record(
        "9100",
        question_content="Return the pairs of neighbours whose sum is k, as lists.",
        platform="leetcode",
        difficulty="hard",
        starter_code="class Solution:\n    def pairs(self, a: List[int], k: int) -> List[List[int]]:\n        ",
        public_test_cases=json.dumps(_tests("functional", ("[1, 2, 3]\n5", "[[2, 3]]"))),
        private_test_cases=encoded(_tests("functional", ("[]\n1", "[]"), ("[0, 0, 0]\n0", "[[0, 0], [0, 0]]"))),
        metadata=json.dumps({"func_name": "pairs"}),
    ),
    lcb_record("abc901_z", public_test_cases="[]", private_test_cases="[]"),
]
NO_TESTS = "livecodebench.jsonl line 4: there is no test"
"""Why the last of them is left out."""


@dataclass(frozen=True)
class Answer:
    problem: str
    name: str
    code: str
    strict: Outcome
    parity: Outcome


ANSWERS = [
    Answer("9001_A", "right", "for _ in range(int(input())):\n    print(sum(map(int, input().split())))", PASSED, PASSED),
    Answer("9001_A", "reads at once", "import sys\nd = list(map(int, sys.stdin.read().split()))\n"
           "for i in range(d[0]):\n    print(d[1 + 2 * i] + d[2 + 2 * i])", PASSED, PASSED),
    Answer("9001_A", "reads on after a line", "import sys\nn = int(input())\nd = list(map(int, sys.stdin.read().split()))\n"
           "for i in range(n):\n    print(d[2 * i] + d[2 * i + 1])", PASSED, WRONG),
    Answer("9001_A", "iterates over the input", "import sys\nlines = [line for line in sys.stdin]\n"
           "for line in lines[1:]:\n    print(sum(map(int, line.split())))", PASSED, ERROR),
    Answer("9001_A", "wrong on a private test", "for _ in range(int(input())):\n"
           "    print(sum(map(int, input().split())) % 1000000007)", WRONG, WRONG),
    Answer("9001_A", "crashes", "print(1 // 0)", ERROR, ERROR),
    Answer("9001_A", "never ends", "while True:\n    pass", TIME, TIME),
    Answer("9001_A", "status after the output", "import sys\nfor _ in range(int(input())):\n"
           "    print(sum(map(int, input().split())))\nsys.exit(1)", ERROR, PASSED),
    Answer("abc901_b", "right", "s = input()\nprint(''.join(sorted(s)))\nprint(len(s))", PASSED, PASSED),
    Answer("abc901_b", "blanks at the end", "s = input()\nprint(''.join(sorted(s)), '')\nprint(len(s) / 1)", PASSED, PASSED),
    Answer("abc901_b", "on one line", "s = input()\nprint(''.join(sorted(s)), len(s))", WRONG, WRONG),
    Answer("abc901_b", "no Python", "s = input(\nprint(s)", ERROR, ERROR),
    Answer("abc901_b", "prints nothing", "s = input()\n", WRONG, WRONG),
    Answer("abc901_b", "a builtin's name",
           "s = input()\nsorted = ''.join(sorted(s))\nprint(sorted)\nprint(len(s))", PASSED, ERROR),
    Answer("9100", "right", "class Solution:\n    def pairs(self, a: List[int], k: int) -> List[List[int]]:\n"
           "        return [[x, y] for x, y in zip(a, a[1:]) if x + y == k]", PASSED, PASSED),
    Answer("9100", "tuples within", "class Solution:\n    def pairs(self, a, k):\n"
           "        return [(x, y) for x, y in zip(a, a[1:]) if x + y == k]", WRONG, WRONG),
    Answer("9100", "keeps state", "class Solution:\n    found = []\n    def pairs(self, a, k):\n"
           "        self.found += [[x, y] for x, y in zip(a, a[1:]) if x + y == k]\n"
           "        return self.found", PASSED, WRONG),
    Answer("9100", "another method", "class Solution:\n    def other(self, a, k):\n        return []", ERROR, ERROR),
    Answer("9100", "equals everything", "class Yes:\n    def __eq__(self, other):\n        return True\n"
           "class Solution:\n    def pairs(self, a, k):\n        return Yes()", WRONG, PASSED),
]  # fmt: skip


def custom_output() -> list[dict[str, Any]]:
    """All programs by problem, in the fields of LiveCodeBench's own output files; the first is of no problem here."""
    rows: dict[str, list[str]] = {"abc000_a": ["print(0)"]}
    for answer in ANSWERS:
        rows.setdefault(answer.problem, []).append(answer.code)
    return [
        {
            "question_id": problem,
            "output_list": [f"Like this:\n```python\n{code}\n```\n" for code in codes],
            "code_list": codes,
            "graded_list": [],
            "metadata": [],
        }
        for problem, codes in rows.items()
    ]
