"""What is taken for equal in both ways of judging without being run twice, and above all what is not."""

import json
from importlib.resources import files

import pytest

from runner.benchmarks.agreement import must_agree
from runner.benchmarks.livecodebench import LiveCodeBenchTask
from runner.benchmarks.parity import parity_of_program
from runner.contract import Outcome
from runner.sandbox.executor import Executor

from .test_parity import CALLS, FAILING, LIMITS, READING, strict

SAMPLE = files("orchestrator.datasets") / "sample/problems.jsonl"
STRONG = files("orchestrator.gateway") / "demo_answers/demo-strong.jsonl"
P, W, E = Outcome.PASSED, Outcome.WRONG_ANSWER, Outcome.RUNTIME_ERROR
READ = "import sys\ndef main():\n    data = sys.stdin.read().split()\n    print(len(data))\n"

CANNOT_DIFFER = {
    "input and print": "n = int(input())\nprint(n + 1)",
    "main guard": READ + "if __name__ == '__main__':\n    main()",
    "read by another name": "import sys\ninput = sys.stdin.read\ndata = input().split()\nprint(data[0])",
    "lines by another name": "import sys\ninput = sys.stdin.readline\nfor _ in range(int(input())):\n    print(input())",
    "a known name bound first": "S = input()\ncount = 0\nfor e in S:\n    count += e == 'a'\nprint(count)",
    "a known name in a loop": "for _ in range(int(input())):\n    count = 1\n    count += 1\n    print(count)",
    "functions over the module's names": "n = int(input())\ndef f(k):\n    return n if k == 0 else f(k - 1)\nprint(f(3))",
    "classes": "class Node:\n    def __init__(self, v):\n        self.v = v\nprint(Node(int(input())).v)",
    "exit": "import sys\nprint(input())\nsys.exit()",
    "a cache": "from functools import cache\n@cache\ndef f(n):\n    return n and f(n - 1)\nprint(f(int(input())))",
    "a local name for all words": "import sys\ndef f():\n    input = sys.stdin.read().split()\n    print(input[0])\nf()",
    "an import that is not used": "from sys import stdin\nprint(input())",
    "parameters with known names": "def f(S, A):\n    return S + A\nS = input()\nA = input()\nprint(f(S, A))",
}
MAY_DIFFER = {
    "read twice": READ + "main()\nmain()",
    "read in a loop": "import sys\nfor _ in range(2):\n    print(sys.stdin.read())",
    "read after a line": "import sys\nprint(input())\nprint(sys.stdin.read())",
    "read and a local input, and input": (
        "import sys\ndef f():\n    input = sys.stdin.read()\n    return input\nprint(f())\nprint(input())"
    ),
    "read by a name used twice": "import sys\nr = sys.stdin.read\nprint(r())\nprint(r())",
    "a known name read before": "print(sum([1]))\nsum = 3\nprint(sum)",
    "a known name in an earlier function": "def f():\n    return sum([1])\nprint(f())\nsum = 3",
    "a known name bound in a branch": "if input():\n    count = 1\nprint(count)",
    "a loop that may not run": "for e in input():\n    pass\nprint(e)",
    "guard that is not the last": "if __name__ == '__main__':\n    print(1)\nprint(2)",
    "guard with else": "if __name__ == '__main__':\n    print(1)\nelse:\n    print(2)",
    "stdin by name": "from sys import stdin\nprint(stdin.readline())",
    "stdin by the checker's imports": "print(stdin.readline())",
    "stdin passed on": "import sys\ndef f(s):\n    return s.readline()\nprint(f(sys.stdin))",
    "another module": "import os\nprint(os.read(0, 9))",
    "chance": "import random\nprint(random.random())",
    "chance by the checker's imports": "print(randint(1, 6))",
    "globals": "x = 1\nprint(globals()['x'])",
    "a class that reads what it binds": "x = 1\nclass A:\n    x = x + 1\nprint(A.x)",
    "star import after a definition": "def gcd(a, b):\n    return 1\nfrom math import *\nprint(gcd(4, 6))",
    "import over a definition": "def gcd(a, b):\n    return 1\nfrom math import gcd\nprint(gcd(4, 6))",
    "text that cannot be printed back": "print(f\"{'a' + chr(10) + '\\\"'}\")\nprint(f'{1:{2}}' + f\"{'\\'' if 0 else 1}\")",
    "a very deep tree": "print(" + "+".join("1" * 200) + ")",
    "nothing": "# nothing",
}


def test_harmless_programs_are_recognised() -> None:
    assert {name for name, code in CANNOT_DIFFER.items() if not must_agree(code, None, P)} == set()


def test_anything_else_is_not() -> None:
    assert {name for name, code in MAY_DIFFER.items() if must_agree(code, None, P)} == set()


def test_no_idiom_on_which_the_two_differ_is_taken_for_harmless() -> None:
    reading = [name for name, (code, parity) in READING.items() if parity is not P and must_agree(code, None, P)]
    failing = [
        name for name, (code, parity, judged) in FAILING.items() if parity is not judged and must_agree(code, None, judged)
    ]
    calls = [
        name for name, (code, _, parity, judged) in CALLS.items() if parity is not judged and must_agree(code, "f", judged)
    ]
    assert (reading, failing, calls) == ([], [], [])


KEPT = {
    "on the object": "class Solution:\n    n = 0\n    def f(self, x):\n        self.n += 1\n        return self.n",
    "in the class": "class Solution:\n    a = []\n    def f(self, x):\n        self.a.append(x)\n        return len(self.a)",
    "in the module": "seen = {}\nclass Solution:\n    def f(self, x):\n        seen[x] = 1\n        return len(seen)",
    "in a default": "class Solution:\n    def f(self, x, seen=[]):\n        seen.append(x)\n        return len(seen)",
    "in a cache": "class Solution:\n    @cache\n    def f(self, x):\n        return x",
    "in a helper's class": "class A:\n    n = 0\nclass Solution:\n    def f(self, x):\n        A.n += 1\n        return A.n",
    "made at the start": "class Solution:\n    def __init__(self):\n        pass\n    def f(self, x):\n        return 1",
    "equal there only": "class Solution:\n    def f(self, x):\n        return UserList([x])",
    "complex": "class Solution:\n    def f(self, x):\n        return x + 0j",
    "own equality": "class A:\n    def __eq__(self, o):\n        pass\nclass Solution:\n    def f(self, x):\n        pass",
    "a main guard": "class Solution:\n    def f(self, x):\n        return y\nif __name__ == '__main__':\n    y = 1",
    "spelled otherwise": "class  Solution:\n    def f(self, x):\n        return x",
}


def test_classes() -> None:
    plain = "from typing import List\nMOD = 10**9 + 7\nclass Solution:\n    def f(self, x: int):\n        return self.g(x)\n"
    assert must_agree(plain + "    def g(self, x):\n        return x % MOD\n", "f", P)
    assert {name for name, code in KEPT.items() if must_agree(code, "f", P)} == set()


@pytest.mark.parametrize(
    "code", ["return 1", "import sys\nprint(1)\nsys.exit(1)", "def f():\n    nonlocal n\nf()", "x = " + "9" * 5000]
)
def test_errors_that_only_a_module_has(code: str) -> None:
    assert not must_agree(code, None, E)


def test_a_text_that_is_no_python_is_an_error_for_both() -> None:
    assert must_agree("def", None, E)
    assert must_agree("print(1", "f", E)
    assert not must_agree("def", None, P)


@pytest.mark.anyio
async def test_harmless_programs_come_out_alike(executor: Executor) -> None:
    """With an input that has a blank line and is read beyond its end."""
    tests = [("2\n\nab a\n", "3"), ("1\nx", "1"), ("", "0")]
    for name, code in CANNOT_DIFFER.items():
        judged = await strict(code, tests, executor)
        assert await parity_of_program(code, tests, executor, LIMITS) is judged, name


def test_most_ordinary_answers_are_recognised() -> None:
    """The recorded answers of the demo models, which were written as models write."""
    problems = {row["question_id"]: row for row in map(json.loads, SAMPLE.read_text().splitlines())}
    found = []
    for row in map(json.loads, STRONG.read_text().splitlines()):
        task = LiveCodeBenchTask.read({**problems[row["question_id"]], "private_test_cases": "[]"})
        if row["intended"] == "passed":
            found.append(must_agree(task.extract(row["text"]).code or "", task.entry, P))
    assert len(found) > 30
    assert sum(found) / len(found) > 0.7
