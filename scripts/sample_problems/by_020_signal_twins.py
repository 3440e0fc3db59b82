"""Largest XOR of two values that are at least k places apart: a binary trie that lags behind."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, n: int, lag: int, top: int) -> str:
    return text((n, lag), (rng.randint(0, top) for _ in range(n)))


PROBLEM = Problem(
    title="Signal Twins",
    difficulty="hard",
    date="2024-12-01",
    statement="""
A receiver wrote down `n` signals, numbers `a_1 ... a_n`. The contrast of two signals is their bitwise exclusive or. Signals
that came too close together disturb each other, so only pairs `i < j` with `j - i ≥ k` are of use.

What is the greatest contrast of a pair of use?

**Input**

The first line holds `n` and `k` (2 ≤ n ≤ 50000, 1 ≤ k < n). The second line holds `a_1 ... a_n` (0 ≤ a_i < 2^20).

**Output**

One integer: the greatest contrast.
""",
    reference="""
import sys


def main():
    data = list(map(int, sys.stdin.buffer.read().split()))
    n, k = data[0], data[1]
    signals = data[2:]
    bits = max(signals).bit_length()
    zero, one = [0], [0]
    best = 0
    for j in range(k, n):
        node, value = 0, signals[j - k]
        for bit in range(bits - 1, -1, -1):
            branch = one if value >> bit & 1 else zero
            if not branch[node]:
                branch[node] = len(zero)
                zero.append(0)
                one.append(0)
            node = branch[node]
        node, value, contrast = 0, signals[j], 0
        for bit in range(bits - 1, -1, -1):
            wanted, other = (zero, one) if value >> bit & 1 else (one, zero)
            if wanted[node]:
                contrast |= 1 << bit
                node = wanted[node]
            else:
                node = other[node]
        if contrast > best:
            best = contrast
    print(best)


main()
""",
    brute="""
n, k = map(int, input().split())
a = list(map(int, input().split()))
print(max(a[i] ^ a[j] for i in range(n) for j in range(i + k, n)))
""",
    public=[text((5, 1), (3, 10, 5, 25, 2)), text((4, 3), (1, 6, 7, 4))],
    edges=[
        text((2, 1), (0, 0)),
        text((2, 1), (2**20 - 1, 0)),
        text((5, 2), (7, 7, 7, 7, 7)),
        text((6, 5), (8, 1, 2, 3, 4, 8)),
    ],
    small=lambda rng: _case(rng, n := rng.randint(2, 9), rng.randint(1, n - 1), 31),
    large=lambda rng: [_case(rng, 2000, 700, 2**20 - 1), _case(rng, 34000, 17, 2**13 - 1)],
)
