"""Command lines that wait to be signed in: by a browser that comes back to them, or by a device code of the provider.

What waits is kept in memory and for minutes only; with several orchestrators behind one address, a sign-in that meets
another one is begun again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from orchestrator.sign_in.service import challenge_of
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import new_token, same_token, token_hash

LASTS_S = 600.0
MOST = 1000

T = TypeVar("T")


@dataclass(frozen=True)
class Allowed:
    """Somebody has said yes in a browser; `token` goes to whoever can show the verifier."""

    token: str
    challenge: str


class CommandLines:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._codes: dict[str, tuple[float, Allowed]] = {}
        self._devices: dict[str, tuple[float, str]] = {}

    def allow(self, token: str, challenge: str) -> str:
        """A code that is exchanged for the token, once."""
        code = new_token()
        _keep(self._codes, token_hash(code), Allowed(token, challenge), self._clock.monotonic())
        return code

    def redeem(self, code: str, verifier: str) -> str | None:
        found = self._codes.pop(token_hash(code), None)
        if found is None or found[0] < self._clock.monotonic():
            return None
        return found[1].token if same_token(challenge_of(verifier), found[1].challenge) else None

    def wait_for(self, device_code: str) -> str:
        """What a command line asks with, in the place of the provider's own code."""
        handle = new_token()
        _keep(self._devices, token_hash(handle), device_code, self._clock.monotonic())
        return handle

    def device(self, handle: str) -> str | None:
        found = self._devices.get(token_hash(handle))
        return found[1] if found is not None and found[0] >= self._clock.monotonic() else None

    def done(self, handle: str) -> None:
        self._devices.pop(token_hash(handle), None)


def _keep(kept: dict[str, tuple[float, T]], key: str, value: T, now: float) -> None:
    for old in [each for each, (until, _) in kept.items() if until < now]:
        del kept[old]
    while len(kept) >= MOST:
        del kept[next(iter(kept))]
    kept[key] = (now + LASTS_S, value)
