"""Student's t distribution, for intervals from few measurements. Pure arithmetic."""

from __future__ import annotations

import math
from functools import lru_cache

MAX_STEPS = 300
TINY = 1e-300
PRECISION = 1e-12
WIDEST = 1e6


@lru_cache(maxsize=4096)
def t_quantile(level: float, freedom: float) -> float:
    """The half-width in standard errors: 2.776 for 95 % and 4 degrees of freedom."""
    if not 0 < level < 1 or freedom <= 0:
        raise ValueError(f"no quantile for level {level} and {freedom} degrees of freedom")
    low, high = 0.0, 2.0
    while _within(high, freedom) < level and high < WIDEST:
        high *= 2
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < level else (low, middle)
    return high


def _within(t: float, freedom: float) -> float:
    """The probability between -t and t."""
    return 1 - incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Lentz)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    result = d
    for step in range(1, MAX_STEPS):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        change = 1.0
        for term in (even, odd):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            change = c * d
            result *= change
        if abs(change - 1) < PRECISION:
            break
    return front * result


def _not_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY
