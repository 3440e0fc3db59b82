"""Asking again while the gateway is away, and saying so."""

from __future__ import annotations

import asyncio

import pytest

from runner.errors import BudgetExhausted, CallError, GatewayAway, ProviderFailed
from runner.llm.calls import Calls
from runner.llm.client import Completion, Prompt
from runner.log import Log

pytestmark = pytest.mark.anyio

PROMPT = Prompt("", "?", "v")


class Script:
    """A client that fails as told, and then answers."""

    def __init__(self, *errors: CallError) -> None:
        self.errors = list(errors)
        self.keys: list[str] = []
        self.at_once = self.most = 0

    async def complete(self, prompt: Prompt, call_key: str) -> Completion:
        self.keys.append(call_key)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0.01)
        self.at_once -= 1
        if self.errors:
            raise self.errors.pop(0)
        return Completion("yes")

    async def close(self) -> None: ...


async def test_the_same_key_until_there_is_an_answer() -> None:
    client = Script(GatewayAway("cut"), GatewayAway("cut"), GatewayAway("503", retry_after_s=0.1))
    changes: list[str | None] = []
    calls = Calls(client, 1, Log(), max_pause_s=0.02, changed=lambda: changes.append(calls.waiting_for))
    task = asyncio.create_task(calls.ask(PROMPT, "k"))
    await asyncio.sleep(0.05)
    assert "the gateway" in (calls.waiting_for or "")
    assert (await task).text == "yes"
    assert client.keys == ["k"] * 4
    assert calls.waiting_for is None
    assert len(changes) == 2


@pytest.mark.parametrize("error", [BudgetExhausted("no"), ProviderFailed("no", 400)], ids=["budget", "provider"])
async def test_other_errors_are_final(error: CallError) -> None:
    client = Script(error)
    with pytest.raises(type(error)):
        await Calls(client, 1, Log()).ask(PROMPT, "k")
    assert client.keys == ["k"]


async def test_patience_ends() -> None:
    client = Script(*[GatewayAway("away")] * 1000)
    with pytest.raises(GatewayAway):
        await Calls(client, 1, Log(), max_pause_s=0.02, patience_s=0.2).ask(PROMPT, "k")
    assert len(client.keys) > 1


async def test_patience_lasts_while_the_orchestrator_is_away_altogether() -> None:
    client = Script(*[GatewayAway("away")] * 20)
    calls = Calls(client, 1, Log(), max_pause_s=0.02, patience_s=0.1, reachable=lambda: False)
    assert (await calls.ask(PROMPT, "k")).text == "yes"


async def test_no_more_calls_at_once_than_allowed() -> None:
    client = Script()
    calls = Calls(client, 3, Log())
    await asyncio.gather(*(calls.ask(PROMPT, str(k)) for k in range(10)))
    assert client.most == 3
