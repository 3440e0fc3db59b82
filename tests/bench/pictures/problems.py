"""Ninety problems of a programming contest, as published ones look: LaTeX, tables, entities, three platforms, two years."""

from __future__ import annotations

import json
import random
from datetime import date, timedelta

FIRST = ["Amber", "Broken", "Crossed", "Distant", "Even", "Folded", "Golden", "Hidden", "Iron", "Joined"]
SECOND = ["Bridges", "Ladders", "Mirrors", "Necklaces", "Orchards", "Queues", "Rivers", "Staircases", "Towers"]
PLATFORMS = ["leetcode", "atcoder", "codeforces"]
FIRST_DAY, DAYS = date(2024, 11, 3), 700
STATEMENTS = [
    r"""You are given an integer $n$ and an array $a_1, a_2, \ldots, a_n$ ($1 \le a_i \le 10^9$). An index $i$ is *good* if
$$\sum_{j=1}^{i} a_j \equiv 0 \pmod{k} \quad \text{and} \quad \max_{j \le i} a_j < 2 \cdot \min_{j \le i} a_j.$$

Count the good indices.

### Constraints

- $1 \leq n \leq 2 \times 10^5$
- $1 \leq k \leq 10^9$

### Input

```
n k
a_1 a_2 ... a_n
```
""",
    r"""There are $N$ towns joined by $N - 1$ roads. For every town $v$, let $d(v)$ be the distance to the nearest market.
Find $\displaystyle\prod_{v=1}^{N} \left( 1 + d(v) \right) \bmod 998244353$.

| road | length | toll |
|---|---:|---:|
| paved | $\lfloor w / 2 \rfloor$ | 2 |
| gravel | $w$ | 1 |
| forest | $w^{2}$ | 0 |

A path may change between kinds of roads **at most once**.
""",
    r"""You are given two strings `s` and `t` of lowercase letters. In one move you may delete `s[i]` if `s[i] &lt; s[i+1]`.

Return the least number of moves after which `s` is a subsequence of `t`, or `-1` if that is impossible.

**Example 1:**

```
Input: s = "abcab", t = "cab"
Output: 2
```

**Constraints:** `1 &lt;= s.length, t.length &lt;= 10^5`
""",
]
DIFFICULTIES = ["easy", "medium", "hard"]


def problem_ids() -> list[str]:
    return [record["question_id"] for record in records()]


def records() -> list[dict[str, str]]:
    rng = random.Random(7)
    found = []
    for number, title in enumerate(f"{one} {other}" for one in FIRST for other in SECOND):
        tests = [{"input": f"{n}\n", "output": f"{n * n}\n", "testtype": "stdin"} for n in (3, 10)]
        found.append(
            {
                "question_title": title,
                "question_content": STATEMENTS[number % 3],
                "platform": PLATFORMS[number % 3],
                "question_id": f"{PLATFORMS[number % 3][:2]}{1000 + number}",
                "contest_date": f"{FIRST_DAY + timedelta(days=rng.randrange(DAYS))}T00:00:00",
                "difficulty": rng.choices(DIFFICULTIES, weights=[3, 4, 3])[0],
                "public_test_cases": json.dumps(tests[:1]),
                "private_test_cases": json.dumps(tests[1:]),
            }
        )
    return found


def hardness() -> dict[str, float]:
    """How hard each problem is, in log odds."""
    rng = random.Random(8)
    level = {"easy": -1.6, "medium": 0.0, "hard": 1.8}
    return {record["question_id"]: level[record["difficulty"]] + rng.gauss(0, 0.7) for record in records()}
