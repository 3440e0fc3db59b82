"""Ways to pay with a bounded number of each coin."""

from random import Random

from .definition import Case, Problem


def _case(rng: Random, total: int, kinds: int, top: int, limit: int) -> Case:
    return total, sorted(rng.sample(range(1, top + 1), kinds)), limit


PROBLEM = Problem(
    title="Coin Purse",
    difficulty="medium",
    date="2025-04-27",
    signature="payWays(total: int, coins: list[int], limit: int) -> int",
    statement="""
A purse holds exactly `limit` coins of each value in `coins` (the values are different). In how many ways can the sum
`total` be paid exactly, without change? Coins of the same value are alike and their order does not matter: a way is
given by how many coins of each value are used. Paying 0 with no coin is one way.

Return the number of ways modulo 1000000007.

**Limits**

- 0 ≤ total ≤ 20000
- 1 ≤ len(coins) ≤ 40, 1 ≤ coins[i] ≤ 20000
- 0 ≤ limit ≤ 20000
""",
    reference="""
class Solution:
    def payWays(self, total: int, coins: list[int], limit: int) -> int:
        mod = 1000000007
        ways = [1] + [0] * total
        for coin in coins:
            running = ways[:]
            for amount in range(coin, total + 1):
                running[amount] = (running[amount] + running[amount - coin]) % mod
            cut = coin * (limit + 1)
            ways = [
                (running[amount] - (running[amount - cut] if amount >= cut else 0)) % mod for amount in range(total + 1)
            ]
        return ways[total]
""",
    brute="""
from functools import lru_cache


class Solution:
    def payWays(self, total, coins, limit):
        @lru_cache(None)
        def ways(rest, kind):
            if rest < 0:
                return 0
            if kind == len(coins):
                return int(rest == 0)
            return sum(ways(rest - used * coins[kind], kind + 1) for used in range(limit + 1)) % 1000000007

        return ways(total, 0)
""",
    public=[(10, [1, 2, 5], 3), (7, [2, 4], 9), (0, [3], 0)],
    edges=[(5, [5], 0), (5, [5], 1), (20000, [1], 20000), (12, [1, 2, 3, 4], 2), (1, [20000], 7)],
    small=lambda rng: _case(rng, rng.randint(0, 25), rng.randint(1, 4), 9, rng.randint(0, 5)),
    large=lambda rng: [_case(rng, 1500, 12, 90, 7), _case(rng, 15000, 15, 60, 15000)],
)
