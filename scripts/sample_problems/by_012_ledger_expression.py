"""Evaluate an expression that nests far deeper than a recursive parser can follow."""

from random import Random

from .definition import Problem, text


def _expression(rng: Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return str(rng.choice([0, 1, 2, 3, 7, 10, 45, 999, 123456789]))
    gap = rng.choice(["", "", " "])
    inner = f"{_expression(rng, depth - 1)}{gap}{rng.choice('+-*')}{gap}{_expression(rng, depth - 1)}"
    return f"({inner})" if rng.random() < 0.6 else inner


def _nested(rng: Random, depth: int) -> str:
    heads = "".join(f"({rng.randint(1, 9)}{rng.choice('+-*')}" for _ in range(depth))
    return f"{heads}7{')' * depth}"


PROBLEM = Problem(
    title="Ledger Expression",
    difficulty="medium",
    date="2025-11-09",
    statement="""
An old ledger holds one long sum, written with whole numbers, `+`, `-`, `*`, round brackets and spaces. Multiplication
binds more tightly than addition and subtraction; operators of the same rank are worked out from left to right. There is
no sign in front of a number or a bracket: `-` always stands between two values.

Work out its value modulo 1000000007, as a number from 0 to 1000000006.

**Input**

One line with a correct expression of at most 300000 characters. Numbers are between 0 and 10^9. Brackets may be nested
up to 100000 deep.

**Output**

One integer.
""",
    reference="""
import sys

MOD = 1000000007


def main():
    line = sys.stdin.readline().strip()
    values, waiting = [], []

    def apply():
        b, a, op = values.pop(), values.pop(), waiting.pop()
        values.append((a + b if op == "+" else a - b if op == "-" else a * b) % MOD)

    i = 0
    while i < len(line):
        ch = line[i]
        if ch.isdigit():
            j = i
            while j < len(line) and line[j].isdigit():
                j += 1
            values.append(int(line[i:j]))
            i = j
            continue
        if ch == "(":
            waiting.append(ch)
        elif ch == ")":
            while waiting[-1] != "(":
                apply()
            waiting.pop()
        elif ch in "+-":
            while waiting and waiting[-1] != "(":
                apply()
            waiting.append(ch)
        elif ch == "*":
            while waiting and waiting[-1] == "*":
                apply()
            waiting.append(ch)
        i += 1
    while waiting:
        apply()
    print(values[0] % MOD)


main()
""",
    brute="""
import re

print(eval(re.sub(r"\\b0+(?=[0-9])", "", input())) % 1000000007)
""",
    public=[text("2 + 3 * (7 - 4)"), text("1-2-3"), text("(10 - 2 * 3) * (4)")],
    edges=[text("0"), text("((((5))))"), text("1000000000 * 1000000000 + 7"), text("8-(3-(2-9))*2-1"), text("2*3-4*5")],
    small=lambda rng: text(_expression(rng, 4)),
    large=lambda rng: [text(_expression(rng, 11)), text(_nested(rng, 70000))],
)
