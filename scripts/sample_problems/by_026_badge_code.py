"""A shift cipher whose shift grows with each letter."""

from random import Random

from .definition import Case, Problem

_SIGNS = "abcxyzABCXYZmM -.7"


def _case(rng: Random, n: int, top: int) -> Case:
    return "".join(rng.choice(_SIGNS) for _ in range(n)), rng.randint(-top, top)


PROBLEM = Problem(
    title="Badge Code",
    difficulty="easy",
    date="2025-02-02",
    signature="badgeCode(name: str, shift: int) -> str",
    statement="""
A conference prints names on badges in a simple code. The first letter of `name` moves `shift` places on in the alphabet,
the second letter `shift + 1` places, the third `shift + 2`, and so on; after `z` comes `a` again. Lower case stays lower
case and upper case stays upper case. Everything that is not a letter (spaces, full stops, hyphens, digits) stays as it is
and is not counted. `shift` may be negative: then letters move backwards.

Return the coded name.

**Limits**

- 0 ≤ len(name) ≤ 10000; only letters `a-z`, `A-Z`, digits, spaces, hyphens and full stops
- -10^9 ≤ shift ≤ 10^9
""",
    reference="""
class Solution:
    def badgeCode(self, name: str, shift: int) -> str:
        coded = []
        for sign in name:
            if sign.isalpha():
                first = ord("a") if sign.islower() else ord("A")
                sign = chr(first + (ord(sign) - first + shift) % 26)
                shift += 1
            coded.append(sign)
        return "".join(coded)
""",
    brute="""
from string import ascii_lowercase as small, ascii_uppercase as big


class Solution:
    def badgeCode(self, name, shift):
        result, seen = "", 0
        for c in name:
            for alphabet in (small, big):
                if c in alphabet:
                    result += alphabet[(alphabet.index(c) + shift + seen) % 26]
                    seen += 1
                    break
            else:
                result += c
        return result
""",
    public=[("Ada", 1), ("J. Z-7z", 0)],
    edges=[("", 5), ("...", 3), ("a", -1), ("Zz", 10**9), ("aA aA", -(10**9)), ("x" * 60, 25)],
    small=lambda rng: _case(rng, rng.randint(1, 12), 30),
    large=lambda rng: [_case(rng, 5000, 10**9)],
)
