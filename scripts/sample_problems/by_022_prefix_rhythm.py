"""Smallest period of every prefix by the failure function."""

from random import Random

from .definition import Problem, text


def _small(rng: Random) -> str:
    piece = "".join(rng.choice("xo") for _ in range(rng.randint(1, 4)))
    beat = (piece * 5)[: rng.randint(1, 12)]
    return text(beat + rng.choice(["", "x", "o", "xx"]))


def _large(rng: Random) -> list[str]:
    word = "x" * 60000 + "o"
    noise = "".join(rng.choice("xo") for _ in range(5000))
    return [text(noise), text((word * 4)[:200000]), text("xo" * 40000 + "x" + "ox" * 30000)]


PROBLEM = Problem(
    title="Rhythm of Prefixes",
    difficulty="hard",
    date="2025-03-02",
    statement="""
A drummer's part is a string of `x` (stroke) and `o` (rest). A number `p` is a *rhythm* of a string if any two characters
that are `p` places apart are equal; the length of the string always is a rhythm, because there are no two such characters.
For example `xoxxox` has the smallest rhythm 3 and `xoxxoxxo` has it as well, while `xxo` has the smallest rhythm 3.

The drummer practises every prefix of the part, from the first character alone to the whole part. What is the sum of the
smallest rhythms of all prefixes?

**Input**

One line with the part: 1 to 200000 characters `x` or `o`.

**Output**

One integer: the sum.
""",
    reference="""
def main():
    part = input().strip()
    border = [0] * len(part)
    total = 1
    for i in range(1, len(part)):
        k = border[i - 1]
        while k and part[i] != part[k]:
            k = border[k - 1]
        if part[i] == part[k]:
            k += 1
        border[i] = k
        total += i + 1 - k
    print(total)


main()
""",
    brute="""
part = input().strip()
total = 0
for end in range(1, len(part) + 1):
    p = 1
    while part[p:end] != part[:end - p]:
        p += 1
    total += p
print(total)
""",
    public=[text("xoxxox"), text("xxxx"), text("xo")],
    edges=[text("o"), text("xxo"), text("oxxxxxxxxx"), text("xoxoxox"), text("xxoxxxxoxx")],
    small=_small,
    large=_large,
)
