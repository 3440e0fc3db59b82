"""Digit sums of two halves; the middle digit of an odd number belongs to neither."""

from random import Random

from .definition import Problem, text


def _stub(rng: Random, longest: int) -> str:
    digits = "".join(rng.choice("0123456789") for _ in range(rng.randint(1, longest)))
    if rng.random() < 0.4:
        half = digits[: len(digits) // 2]
        digits = digits[: (len(digits) + 1) // 2] + "".join(rng.sample(half, len(half)))
    return digits


def _case(rng: Random, count: int, longest: int) -> str:
    return text(count, *(_stub(rng, longest) for _ in range(count)))


PROBLEM = Problem(
    title="Ticket Stubs",
    difficulty="easy",
    date="2024-01-28",
    statement="""
Mira keeps the stubs of her tram tickets. She calls a stub *level* if the digits of its left half and the digits of its
right half have the same sum. If a stub has an odd number of digits, the digit in the middle belongs to neither half; so a
stub with one digit is always level. Leading zeros are ordinary digits.

How many of her stubs are level?

**Input**

The first line holds `t` (1 ≤ t ≤ 2000), the number of stubs. Each of the next `t` lines holds one stub of 1 to 60 digits.

**Output**

One integer: the number of level stubs.
""",
    reference="""
t = int(input())
level = 0
for _ in range(t):
    stub = input().strip()
    half = len(stub) // 2
    left = sum(int(d) for d in stub[:half])
    right = sum(int(d) for d in stub[len(stub) - half:])
    level += left == right
print(level)
""",
    brute="""
import sys

answer = 0
for stub in sys.stdin.read().split()[1:]:
    balance, i, j = 0, 0, len(stub) - 1
    while i < j:
        balance += ord(stub[i]) - ord(stub[j])
        i, j = i + 1, j - 1
    answer += not balance
print(answer)
""",
    public=[text(4, "1230", "4545", "90", "7"), text(3, "12921", "0000", "100")],
    edges=[text(1, "0"), text(2, "10", "01"), text(3, "9" * 60, "9" * 59, "0" * 59 + "1")],
    small=lambda rng: _case(rng, rng.randint(1, 8), 6),
    large=lambda rng: [_case(rng, 2000, 60), _case(rng, 2000, 4)],
)
