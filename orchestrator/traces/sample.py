"""Made-up, labelled traces of a shop's assistant for first tries, tests and benchmarks. Pure and seeded."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

QUESTIONS = (
    "Where is my order {order}?",
    "I want to send back order {order}. What do I do?",
    "Order {order} arrived with a broken lid. Can I get a new one?",
    "Please change the address of order {order} to my office.",
    "When will order {order} be delivered?",
)
GOOD = (
    "Order {order} left our warehouse this morning; it should be with you within two days.",
    "You can send order {order} back within 30 days: print the label from your account and hand the parcel in.",
    "A replacement for order {order} is on its way, free of charge. You need not return the broken one.",
    "Done: order {order} now goes to your office. You get a confirmation by mail.",
    "Order {order} will be delivered on Thursday between 9 and 12.",
)
BAD = (
    "I'm sorry, but I can't help with that.",
    "",
    "Order {other} will be delivered on Friday.",
    "Something went wrong, please try again later.",
    "I don't know.",
)


def sample_traces(count: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yields traces with realistic labels; half of them are good."""
    rng = random.Random(seed)
    for number in range(count):
        order, other = f"AB-{rng.randrange(10_000, 99_999)}", f"AB-{rng.randrange(10_000, 99_999)}"
        kind = rng.randrange(len(QUESTIONS))
        good = number % 2 == 0
        answer = GOOD[kind] if good else BAD[rng.randrange(len(BAD))]
        yield {
            "id": f"shop-{seed}-{number:06d}",
            "input": QUESTIONS[kind].format(order=order),
            "output": answer.format(order=order, other=other),
            "steps": [{"name": "look_up_order", "type": "tool", "input": {"order": order}, "output": {"state": "shipped"}}],
            "metadata": {"channel": rng.choice(("chat", "mail")), "language": "en"},
            "label": "positive" if good else "negative",
        }
