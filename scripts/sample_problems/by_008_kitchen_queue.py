"""A queue that people also leave from the middle; searching it for each leaver is too slow."""

from random import Random

from .definition import Problem, text


def _small(rng: Random) -> str:
    ids = rng.sample(range(1, 30), rng.randint(1, 8))
    ops = [f"J {i}" for i in ids]
    for _ in range(rng.randint(0, 8)):
        ops.insert(rng.randint(0, len(ops)), rng.choice(["S", f"L {rng.choice(ids)}", f"L {rng.randint(1, 30)}"]))
    return text(len(ops), *ops)


def _large(rng: Random) -> list[str]:
    count = 45000
    joins = [f"J {i}" for i in range(1, count + 1)]
    leaves = [f"L {i}" for i in range(count, 7000, -1)]
    mixed: list[str] = []
    for i in range(1, 8001):
        mixed += [f"J {i}", rng.choice(["S", f"L {rng.randint(1, i)}"])]
    return [text(len(mixed), *mixed), text(count * 2 - 7000 + 3000, *joins, *leaves, *["S"] * 3000)]


PROBLEM = Problem(
    title="Kitchen Queue",
    difficulty="easy",
    date="2024-08-25",
    statement="""
People queue at a soup kitchen. Three things happen:

- `J x`: the person with number `x` joins at the end of the queue. Everybody joins at most once.
- `L x`: person `x` leaves the queue, wherever they stand. If `x` is not in the queue at that moment, nothing happens.
- `S`: the first person in the queue is served and goes. If the queue is empty, nothing happens.

**Input**

The first line holds the number of events `m` (1 ≤ m ≤ 100000), then one event per line in order. Numbers of people are
between 1 and 10^6.

**Output**

Two integers on one line: how many people were served; and the sum of `i · x_i` modulo 1000000007, where `x_i` is the
number of the `i`-th person served (counted from 1).
""",
    reference="""
import sys


def main():
    events = sys.stdin.read().split("\\n")
    queue = {}
    served = check = 0
    for event in events[1:]:
        if event.startswith("J"):
            queue[int(event[2:])] = True
        elif event.startswith("L"):
            queue.pop(int(event[2:]), None)
        elif event.startswith("S") and queue:
            person = next(iter(queue))
            del queue[person]
            served += 1
            check += served * person
    print(served, check % 1000000007)


main()
""",
    brute="""
queue, served = [], []
for _ in range(int(input())):
    event = input().split()
    if event[0] == "J":
        queue.append(int(event[1]))
    elif event[0] == "L":
        if int(event[1]) in queue:
            queue.remove(int(event[1]))
    elif queue:
        served.append(queue.pop(0))
print(len(served), sum(i * x for i, x in enumerate(served, 1)) % 1000000007)
""",
    public=[text(7, "J 5", "J 9", "J 2", "L 9", "S", "S", "S"), text(4, "S", "J 3", "L 4", "S")],
    edges=[text(1, "S"), text(1, "L 1000000"), text(3, "J 1", "L 1", "S"), text(4, "J 7", "S", "L 7", "S")],
    small=_small,
    large=_large,
)
