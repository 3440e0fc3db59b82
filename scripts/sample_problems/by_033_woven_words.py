"""Count the ways to weave two words into a third."""

from random import Random

from .definition import Case, Problem


def _case(rng: Random, n: int, m: int, letters: str) -> Case:
    a = [rng.choice(letters) for _ in range(n)]
    b = [rng.choice(letters) for _ in range(m)]
    turns = [0] * n + [1] * m
    rng.shuffle(turns)
    threads = (iter(a), iter(b))
    woven = [next(threads[turn]) for turn in turns]
    if woven and rng.random() < 0.2:
        woven[rng.randrange(len(woven))] = rng.choice(letters)
    return "".join(a), "".join(b), "".join(woven)


PROBLEM = Problem(
    title="Woven Words",
    difficulty="hard",
    date="2026-01-18",
    signature="wovenCount(a: str, b: str, c: str) -> int",
    statement="""
A weaver has a red thread with the word `a` on it, a blue thread with the word `b`, and a finished cloth with the word
`c`. In how many ways can every letter of `c` be coloured red or blue so that the red letters, read from left to right,
spell `a` and the blue letters spell `b`?

Return the number of colourings modulo 1000000007; 0 if there is none. Two colourings are different if some position of
`c` has different colours.

**Limits**

- 0 ≤ len(a), len(b) ≤ 500
- 0 ≤ len(c) ≤ 1000
- all words consist of lower-case letters
""",
    reference="""
class Solution:
    def wovenCount(self, a: str, b: str, c: str) -> int:
        if len(a) + len(b) != len(c):
            return 0
        ways = [0] * (len(b) + 1)
        for i in range(len(a) + 1):
            for j in range(len(b) + 1):
                if i == 0:
                    count = 1 if j == 0 else 0
                else:
                    count = ways[j] if a[i - 1] == c[i + j - 1] else 0
                if j and b[j - 1] == c[i + j - 1]:
                    count += ways[j - 1]
                ways[j] = count % 1000000007
        return ways[-1]
""",
    brute="""
from itertools import combinations


class Solution:
    def wovenCount(self, a, b, c):
        if len(a) + len(b) != len(c):
            return 0
        count = 0
        for red in combinations(range(len(c)), len(a)):
            chosen = set(red)
            if "".join(c[i] for i in red) == a and "".join(c[i] for i in range(len(c)) if i not in chosen) == b:
                count += 1
        return count % 1000000007
""",
    public=[("ab", "ac", "abac"), ("xx", "x", "xxx"), ("no", "yes", "noye")],
    edges=[("", "", ""), ("", "q", "q"), ("a", "", "b"), ("", "", "a"), ("aa", "aa", "aaaa"), ("abc", "def", "adbecf")],
    small=lambda rng: _case(rng, rng.randint(0, 5), rng.randint(0, 5), "ab"),
    large=lambda rng: [("a" * 300, "a" * 300, "a" * 600), _case(rng, 400, 350, "ab"), _case(rng, 60, 70, "abc")],
)
