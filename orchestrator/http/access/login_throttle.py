"""Slows down token guessing: after a few wrong tokens, further tries from the same address, or for the same token prefix
from any address, are queued and wait longer and longer. The holder of the right token waits a few seconds at most, or is
told that the queue is full. Pure except for its own state."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.errors import RateLimited
from orchestrator.system.identifiers import token_hash

FREE = 3
"""Wrong tries without a penalty: people mistype."""
LONGEST_S = 8.0
PATIENCE_S = 16.0
FORGET_S = 900.0
MOST_ADDRESSES = 10_000
BEGINNING = 8
"""Length of the token prefix by which guesses from many addresses are recognised as aimed at one token."""


def names_of(address: str, token: str) -> tuple[str, str]:
    """The keys by which tries are counted; of the token's prefix only a hash is kept."""
    return f"address {address}", f"token {token_hash(token[:BEGINNING])}"


@dataclass
class _LoginFailures:
    wrong: int = 0
    free_at: float = 0.0
    last: float = 0.0


class LoginThrottle:
    def __init__(self) -> None:
        self._failures: dict[str, _LoginFailures] = {}

    def wait_s(self, address: str, now: float) -> float:
        """How long a try from this address must wait; reserves its place in the queue."""
        past = self._failures.get(address)
        if past is None:
            return 0.0
        if now - past.last > FORGET_S:
            del self._failures[address]
            return 0.0
        if past.wrong < FREE:
            return 0.0
        begin = max(now, past.free_at)
        if begin - now > PATIENCE_S:
            raise RateLimited(
                "There were too many wrong tokens from your address, or too many that begin like this one; wait a little.",
                max(1, round(begin - now)),
            )
        past.free_at = begin + min(LONGEST_S, 2.0 ** (past.wrong - FREE))
        return begin - now

    def wrong(self, address: str, now: float) -> None:
        if address not in self._failures and len(self._failures) >= MOST_ADDRESSES:
            del self._failures[min(self._failures, key=lambda address: self._failures[address].last)]
        past = self._failures.setdefault(address, _LoginFailures())
        past.wrong += 1
        past.last = now
        if past.wrong >= FREE:
            past.free_at = max(past.free_at, now + min(LONGEST_S, 2.0 ** (past.wrong - FREE)))

    def right(self, address: str) -> None:
        self._failures.pop(address, None)
