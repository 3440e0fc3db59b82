"""A plain simulation with two clamps."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, stops: int, seats: int) -> str:
    return text((stops, seats), *((rng.randint(0, seats), rng.randint(0, seats)) for _ in range(stops)))


PROBLEM = Problem(
    title="Bus Seats",
    difficulty="easy",
    date="2024-03-03",
    statement="""
A bus with `c` seats starts empty and calls at `n` stops. At each stop, passengers first get off, then people get on:

- the plan says that `a` passengers get off; if fewer than `a` are on the bus, all of them get off;
- `b` people want to get on; they take the free seats, and whoever finds none stays behind and walks home.

Nobody stands. Report the largest number of passengers that the bus carried between two stops, how many people stayed
behind in total, and how many passengers are on the bus after the last stop.

**Input**

The first line holds `n` and `c` (1 ≤ n ≤ 1000, 1 ≤ c ≤ 500). Each of the next `n` lines holds `a` and `b`
(0 ≤ a, b ≤ 1000).

**Output**

Three integers on one line, separated by spaces. The number after the last stop counts for the largest load, too.
""",
    reference="""
n, seats = map(int, input().split())
aboard = largest = behind = 0
for _ in range(n):
    off, on = map(int, input().split())
    aboard -= min(off, aboard)
    boarding = min(on, seats - aboard)
    behind += on - boarding
    aboard += boarding
    largest = max(largest, aboard)
print(largest, behind, aboard)
""",
    brute="""
import sys

data = list(map(int, sys.stdin.read().split()))
n, c = data[:2]
bus, peak, lost = [], 0, 0
for i in range(n):
    for _ in range(data[2 + 2 * i]):
        if bus:
            bus.pop()
    for _ in range(data[3 + 2 * i]):
        if len(bus) < c:
            bus.append(1)
        else:
            lost += 1
    peak = max(peak, len(bus))
print(peak, lost, len(bus))
""",
    public=[text((3, 4), (0, 3), (1, 4), (2, 0)), text((2, 10), (5, 2), (0, 3))],
    edges=[text((1, 1), (0, 0)), text((1, 1), (1000, 1000)), text((3, 5), (0, 5), (5, 5), (9, 0))],
    small=lambda rng: _case(rng, rng.randint(1, 7), rng.randint(1, 9)),
    large=lambda rng: [_case(rng, 1000, 500), _case(rng, 1000, 37)],
)
