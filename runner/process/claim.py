"""Claims a run: one request, repeated while the orchestrator is unreachable or asks to wait. Standard library only.

A claim repeated after a lost answer carries the same runner id, so that the orchestrator can return the same run.
"""

import json
import random
import time
from collections.abc import Callable
from typing import Any

from runner.errors import ClaimRefused
from runner.log import Log
from runner.process.boot import CONTRACT_VERSION, NO_ANSWER, Boot, Link, Reply

PATIENCE_S = 100.0
MAX_PAUSE_S = 5.0
TRY_AGAIN = frozenset({408, 425, 429})


def claim(
    link: Link,
    boot: Boot,
    runner_id: str,
    log: Log,
    *,
    patience_s: float = PATIENCE_S,
    before: Callable[[], dict[str, Any]] = dict,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Returns the `spec` of the claimed run as plain JSON. `before` is called before each request; its fields are sent too.

    Raises `ClaimRefused` if the orchestrator refuses, or does not answer for `patience_s`.
    """
    body = {
        "runner_id": runner_id,
        "contract_version": CONTRACT_VERSION,
        "instance_type": boot.instance_type,
        "engine": boot.engine,
    }
    give_up, failures = now() + patience_s, 0
    while True:
        more = before()
        try:
            reply = link.post("/runner/claim", boot.token, {**body, **more})
            problem = None if 200 <= reply.status < 300 else problem_of(reply)
            retry_after_s = reply.retry_after_s
        except NO_ANSWER as error:
            reply, problem, retry_after_s = None, f"{type(error).__name__}: {error}", None
        if reply is not None and problem is None:
            answer = _answer(reply)
            if answer["action"] == "run":
                spec: dict[str, Any] = answer["spec"]
                return spec
            sleep(min(max(float(answer.get("retry_after_s", 1.0)), 0.05), 60.0))
            give_up, failures = now() + patience_s, 0
            continue
        if reply is not None and reply.status < 500 and reply.status not in TRY_AGAIN:
            raise ClaimRefused(f"the orchestrator refused the claim with status {reply.status}: {problem}")
        pause = retry_after_s if retry_after_s is not None else min(0.1 * 2**failures, MAX_PAUSE_S)
        pause *= random.uniform(0.75, 1.25)
        if now() + pause > give_up:
            raise ClaimRefused(f"the orchestrator did not answer the claim for {patience_s:.0f} s; last error: {problem}")
        failures += 1
        log("claim.again", trouble=problem, pause_s=round(pause, 2))
        sleep(pause)


def _answer(reply: Reply) -> dict[str, Any]:
    try:
        answer = json.loads(reply.body)
        if answer["action"] == "wait":
            return dict(answer)
        spec = answer["spec"]
        if answer["action"] == "run" and all(key in spec for key in ("run_id", "attempt", "run_token")):
            return dict(answer)
    except (ValueError, KeyError, TypeError):
        pass
    raise ClaimRefused("the orchestrator's answer to the claim cannot be understood; do the versions match?")


def problem_of(reply: Reply) -> str:
    """Returns the message of a problem+json body, or the beginning of any other body."""
    text = reply.body[:500].decode("utf-8", "replace")
    try:
        body = json.loads(reply.body)
        return str(body.get("detail") or body.get("title") or text)
    except (ValueError, AttributeError):
        return text
