"""Runs on other machines: given by the dispatcher, started by an agent, ended by what it says or by its silence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlmodel import Session, select

from orchestrator.engines.engine import InstanceType
from orchestrator.errors import NotFound
from orchestrator.fleet.agents import ContainerReport, Dismissed, Introduction, Order
from orchestrator.runs.scheduling.capacity import GIB, Capacity, Load, Place, choose, why_nowhere
from orchestrator.runs.tables import Attempt
from orchestrator.system.identifiers import token_hash
from tests.service.runs.simulated_scheduler import TYPES, RunWorld

TYPE = next(iter(TYPES))
WHO = Introduction("agent0001", "far", "elsewhere", "docker", [TYPE], 4, 4.0, 16 * GIB, "http://door:1")


async def order_of(world: RunWorld, *known: str, who: Introduction = WHO) -> Order | None:
    found = await world.agents.claim(who, set(known), hold_s=0)
    assert not isinstance(found, Dismissed)
    return found


async def given(world: RunWorld, **changed: object) -> tuple[str, Order]:
    """A run that the agent was given."""
    assert await order_of(world) is None
    run_id = await world.new_run(instance_type=TYPE, provider="elsewhere", **changed)
    await world.round()
    order = await order_of(world)
    assert order is not None
    assert order.run_id == run_id
    return run_id, order


async def complete(world: RunWorld, run_id: str, order: Order) -> None:
    attempt = (await world.attempts(run_id))[-1]
    claim = await world.intake.claim(attempt, "far-1")
    items = [problem for part in claim.run.task.benchmarks for problem in part.problem_ids]
    for seq, problem in enumerate(items, 1):
        item = {
            "benchmark": claim.run.task.benchmarks[0].name,
            "problem_id": problem,
            "sample_index": 0,
            "outcome": "passed",
        }
        await world.post(attempt, {"type": "progress", "seq": seq, "item": item})
    await world.post(attempt, {"type": "complete", "seq": len(items) + 1, "items": len(items)})


async def test_a_run_is_given_started_and_completed_elsewhere(world: RunWorld) -> None:
    run_id, order = await given(world)
    (attempt,) = await world.attempts(run_id)
    assert attempt.token_hash == token_hash(order.boot.token)
    assert (order.boot.orchestrator_url, attempt.facts["door"]) == ("http://door:1", "http://door:1")
    assert not world.engine.launched, "our own engine has nothing to do with it"
    await world.rounds(3)
    assert (await world.row(run_id)).status == "starting", "a container that is not in our engine is not taken for gone"
    await complete(world, run_id, order)
    assert await world.agents.report(WHO.id, [ContainerReport(order.name, ended=True, exit_code=0, log_tail="bye")]) == []
    await world.round()
    (attempt,) = await world.attempts(run_id)
    assert (attempt.exit_code, attempt.log_tail, attempt.token_hash) == (0, "bye", None)
    assert (await world.row(run_id)).status == "completed"


async def test_a_lost_order_is_given_again_and_the_first_token_is_void(world: RunWorld) -> None:
    run_id, first = await given(world)
    second = await order_of(world)
    assert second is not None
    assert (second.name, second.boot.token != first.boot.token) == (first.name, True)
    assert (await world.attempts(run_id))[0].token_hash == token_hash(second.boot.token)
    assert await order_of(world, second.name) is None, "what the agent has is not given again"


async def test_a_run_whose_type_left_the_settings_is_given_as_the_largest(world: RunWorld) -> None:
    largest = max(TYPES.values(), key=lambda each: (each.vcpu, each.memory_bytes))
    run_id, _ = await given(world)

    def rename(session: Session) -> None:
        row = session.exec(select(Attempt).where(Attempt.run_id == run_id)).one()
        row.instance_type = "gone"
        session.add(row)

    await world.db.write(rename)
    again = await order_of(world)
    assert again is not None
    assert again.instance_type == largest
    await world.round()


async def test_an_order_whose_container_has_ended_is_not_given_again(world: RunWorld) -> None:
    _, order = await given(world)
    await world.agents.report(WHO.id, [ContainerReport(order.name, ended=True, exit_code=2)])
    assert await order_of(world) is None, "before anybody has looked at the end"


@pytest.mark.parametrize("fate", ["dies", "silent before the claim", "silent", "refused", "removed"])
async def test_what_goes_wrong_elsewhere_costs_one_attempt(world: RunWorld, fate: str) -> None:
    run_id, order = await given(world)
    if fate == "refused":
        await world.agents.report(WHO.id, [ContainerReport(order.name, ended=True, detail="no such image")])
    elif fate == "dies":
        await world.intake.claim((await world.attempts(run_id))[0], "far-1")
        await world.agents.report(WHO.id, [ContainerReport(order.name, ended=True, exit_code=137)])
    elif fate == "removed":
        await world.intake.claim((await world.attempts(run_id))[0], "far-1")
        await world.agents.report(WHO.id, [ContainerReport(order.name, ended=True, gone=True)])
    elif fate == "silent":
        await world.intake.claim((await world.attempts(run_id))[0], "far-1")
    told = fate in ("dies", "refused", "removed")
    await world.rounds(1 if told else 16, 1 if told else 9)
    run = await world.row(run_id)
    assert (run.status, run.attempt) == ("pending", 1)
    reasons = {"dies": "container_gone", "removed": "container_gone", "refused": "engine_error", "silent": "heartbeat_lost"}
    assert run.reason == reasons.get(fate, "start_timeout")
    assert (await world.attempts(run_id))[0].token_hash is None, "whoever still has the token can do nothing with it"
    assert await order_of(world, order.name) is None
    await world.round(5)
    again = await order_of(world, order.name)
    assert again is not None
    assert again.attempt == 2
    assert await world.agents.report(WHO.id, [ContainerReport(order.name, ended=False)]) == [order.name], (
        "the old one must stop"
    )


async def test_cancel_stops_it_there_and_waits_for_the_word(world: RunWorld) -> None:
    run_id, order = await given(world)
    await world.intake.claim((await world.attempts(run_id))[0], "far-1")
    await world.cancel(run_id)
    await world.round(1)
    assert (await world.row(run_id)).status == "running"
    assert await world.agents.report(WHO.id, [ContainerReport(order.name, ended=False)]) == [order.name]
    await world.agents.report(WHO.id, [ContainerReport(order.name, ended=True, exit_code=143)])
    await world.round(1)
    assert (await world.row(run_id)).status == "cancelled"


async def test_an_image_that_is_fetched_there_may_take_its_time(world: RunWorld) -> None:
    run_id, order = await given(world)
    for _ in range(40):
        assert await world.agents.report(WHO.id, [ContainerReport(order.name, ended=False, fetching=True)]) == []
        await world.round(10)
    assert (await world.row(run_id)).status == "starting", "it is not taken for one that does not come up"
    await world.rounds(13, 10)
    assert await world.status(run_id) == ("pending", "start_timeout"), "nobody speaks of it any more"


async def test_a_cancelled_run_whose_machine_is_silent_ends_all_the_same(world: RunWorld) -> None:
    run_id, _ = await given(world)
    await world.cancel(run_id)
    await world.rounds(10, 9)
    assert (await world.row(run_id)).status == "cancelled"


async def test_an_agent_that_is_told_to_leave_finishes_first(world: RunWorld) -> None:
    run_id, order = await given(world)
    await world.agents.dismiss(WHO.id)
    assert await order_of(world, order.name) is None
    await complete(world, run_id, order)
    await world.round()
    assert isinstance(await world.agents.claim(WHO, set(), hold_s=0), Dismissed)
    with pytest.raises(NotFound):
        await world.agents.report(WHO.id, [])


async def test_a_run_for_nobody_waits_and_one_without_a_wish_stays_here(world: RunWorld) -> None:
    nobody = await world.new_run(instance_type=TYPE, provider="nowhere")
    here = await world.new_run(instance_type=TYPE)
    await world.round()
    assert (await world.row(nobody)).status == "pending"
    assert (await world.row(here)).status != "pending"


SMALL = InstanceType("small", 1, GIB, 0)


def place(taken: int, of: int, **changed: object) -> Place:
    return replace(Place("p", Capacity(of, float(of), of * GIB), Load.of([SMALL] * taken)), **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("places", "provider", "chosen"),
    [
        pytest.param([place(1, 2), place(1, 4)], None, 1, id="least loaded"),
        pytest.param([place(0, 2), place(0, 4)], None, 0, id="the first of equals"),
        pytest.param([place(2, 2), place(3, 4)], None, 1, id="only where it fits"),
        pytest.param([place(0, 2), place(3, 4, provider="q")], "q", 1, id="as asked for"),
        pytest.param([place(0, 2, instance_types=frozenset({"x"}))], None, None, id="not offered"),
        pytest.param([place(2, 2)], None, None, id="full"),
    ],
)
def test_placement(places: list[Place], provider: str | None, chosen: int | None) -> None:
    found = choose(places, SMALL, provider)
    assert found == (None if chosen is None else places[chosen])
    assert (why_nowhere(places, SMALL, provider) is None) == (found is not None)
