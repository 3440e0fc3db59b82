"""Clock arithmetic, read until the input ends."""

from random import Random

from .definition import Problem, text


def _case(rng: Random, count: int) -> str:
    return text(*(f"{rng.randint(1, 12):02}:{rng.randint(0, 59):02}" for _ in range(count)))


PROBLEM = Problem(
    title="Clock in the Mirror",
    difficulty="easy",
    date="2025-12-07",
    statement="""
A wall clock with hands and no numbers hangs opposite a mirror. In the mirror it seems to show the time `HH:MM`. Which
time does it really show? The mirror swaps left and right, so 03:00 is seen as 09:00, and 12:00 stays 12:00. The hour hand
moves evenly: what looks like 01:15 really is 10:45.

**Input**

One time per line until the end of the input, at most 5000 lines. Hours are 01 to 12, minutes 00 to 59, always two digits.

**Output**

For each line the real time in the same form.
""",
    reference="""
import sys

for line in sys.stdin:
    if not line.strip():
        continue
    hours, minutes = map(int, line.split(":"))
    real = (720 - hours * 60 - minutes) % 720
    print(f"{real // 60 or 12:02}:{real % 60:02}")
""",
    brute="""
import sys

for seen in sys.stdin.read().split():
    h, m = int(seen[:2]) % 12, int(seen[3:])
    real_h, real_m = 0, 0
    # Turn the real clock forwards and the mirrored one backwards until they meet.
    while (h, m) != (0, 0):
        h, m = (h, m - 1) if m else ((h - 1) % 12, 59)
        real_h, real_m = (real_h, real_m - 1) if real_m else ((real_h - 1) % 12, 59)
    print("%02d:%02d" % (real_h or 12, real_m))
""",
    public=[text("03:00", "12:00", "01:15"), text("12:30", "06:00")],
    edges=[text("12:01"), text("11:59"), text("12:59"), text("11:00", "11:01", "12:00", "01:00")],
    small=lambda rng: _case(rng, rng.randint(1, 6)),
    large=lambda rng: [_case(rng, 720), _case(rng, 1500)],
)
