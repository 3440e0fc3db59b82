"""Word counts with a tie rule; words are runs of letters, whatever stands between them."""

from random import Random

from .definition import Problem, text

_WORDS = [
    "oak",
    "ash",
    "elm",
    "yew",
    "pine",
    "Pine",
    "PINE",
    "Oak",
    "oaks",
    "asH",
    "a",
    "A",
    "ab",
    "Ab",
    "larch",
    "hazel",
]
_GAPS = [" ", " ", " ", ", ", "-", "'", "\n", ". ", " 42 ", "_"]


def _case(rng: Random, k: int, count: int) -> str:
    return text(k, "".join(rng.choice(_WORDS) + rng.choice(_GAPS) for _ in range(count)))


PROBLEM = Problem(
    title="Tally of Words",
    difficulty="easy",
    date="2024-05-19",
    statement="""
Read a text and list its `k` most frequent words. A word is a longest run of letters `a` to `z` or `A` to `Z`; anything
else (spaces, digits, hyphens, apostrophes, underscores, line ends) separates words. Upper and lower case do not matter.

**Input**

The first line holds `k` (1 ≤ k ≤ 100). The text follows, up to the end of the input: at most 100000 characters,
possibly with empty lines, possibly without any word.

**Output**

The `k` most frequent words, one per line, in lower case, each followed by a space and its count: the highest count first,
words of equal count in alphabetical order. If the text has fewer than `k` different words, list all of them; if it has
none, print `nothing`.
""",
    reference="""
import re
import sys
from collections import Counter

k = int(sys.stdin.readline())
tally = Counter(re.findall("[a-z]+", sys.stdin.read().lower()))
ranked = sorted(tally.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
if not ranked:
    print("nothing")
for word, count in ranked:
    print(word, count)
""",
    brute="""
import sys

head, _, body = sys.stdin.read().partition("\\n")
words, current = [], ""
for ch in body + " ":
    if ch.isascii() and ch.isalpha():
        current += ch.lower()
    elif current:
        words.append(current)
        current = ""
names = sorted(set(words))
names.sort(key=words.count, reverse=True)
for name in names[:int(head)]:
    print(name, words.count(name))
if not names:
    print("nothing")
""",
    public=[text(2, "The wind and the sea and the sand."), text(5, "It's 5 o'clock, it's late.", "", "Late!")],
    edges=[text(3, ""), text(1, "1234 -- 5678"), text(100, "z Y x"), "2\nno newline at the end, no"],
    small=lambda rng: _case(rng, rng.randint(1, 6), rng.randint(0, 25)),
    large=lambda rng: [_case(rng, 10, 18000), _case(rng, 100, 3000)],
)
