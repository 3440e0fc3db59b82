"""Two orchestrators on one PostgreSQL database; the leader stands still for longer than its lease (F4).

PostgreSQL itself notes who changes a run's scheduling: each orchestrator connects under a name of its own, and a trigger
writes down the name, the change, and who held the lease in that very transaction.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from tests.bench.faults.fault import POSTGRESQL, Fault
from tests.bench.faults.scene import Opening, Scene, around_service
from tests.faults.counting_provider import CountingProvider
from tests.faults.service import Service, wait_for
from tests.postgres_from_wheel import PostgresFromWheel

LEASE_S = 6
WATCH = """
CREATE TABLE watched (number serial, who text, run_id text, was text, became text, epoch int);
CREATE FUNCTION note_start() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.status = 'starting' AND OLD.status IS DISTINCT FROM 'starting' THEN
    INSERT INTO watched (who, run_id, was, became, epoch)
    SELECT current_setting('application_name'), NEW.id, OLD.status, NEW.status, epoch FROM leases WHERE name = 'leader';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER note_start AFTER UPDATE ON container_runs FOR EACH ROW EXECUTE FUNCTION note_start();
CREATE TABLE held (number serial, who text, epoch int);
CREATE FUNCTION note_lease() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO held (who, epoch) VALUES (current_setting('application_name'), NEW.epoch);
  RETURN NEW;
END $$;
CREATE TRIGGER note_lease AFTER UPDATE ON leases FOR EACH ROW EXECUTE FUNCTION note_lease();
"""
"""Only a leader starts runs; everything else on a run may come from its runner, through either orchestrator."""


@contextmanager
def open_two(opening: Opening) -> Iterator[Scene]:
    with ExitStack() as stack:
        postgres = PostgresFromWheel()
        stack.callback(postgres.close)
        postgres.start()
        name = postgres.create()
        provider = CountingProvider(opening.folder / "provider.log", opening.provider_latency_s)
        stack.enter_context(provider)
        scene = stack.enter_context(
            around_service(opening, provider, f"{postgres.url(name)}&application_name=one", postgres)
        )
        one = scene.service
        two = Service(
            opening.folder / "data-two",
            database_url=f"{postgres.url(name)}&application_name=two",
            environment={"OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": "sk-none"},
            **opening.settings,
            instance=one.instance,
            runner_network=one.network,
        )
        two.instance, two.network = one.instance, one.network
        stack.callback(two.close)
        two.client.event_hooks = one.client.event_hooks
        two.start()
        with postgres.connect(name) as connection:
            connection.execute(WATCH)
        scene.database_url = postgres.url(name)
        scene.extras["services"] = {"one": one, "two": two}
        yield scene


def _lease(scene: Scene) -> tuple[str, int]:
    """Who took or renewed it last, and its epoch."""
    rows = wait_for(lambda: scene.rows("SELECT who, epoch FROM held ORDER BY number DESC LIMIT 1"), 60, "somebody leads")
    return str(rows[0]["who"]), int(rows[0]["epoch"])


def leader_stands_still(scene: Scene, rng: random.Random) -> float:
    services: dict[str, Service] = scene.extras["services"]
    # Some run, some wait: there is something to write at every moment
    for _ in range(6):
        scene.submit(8)
    time.sleep(rng.uniform(0, 4))
    leader, epoch = _lease(scene)
    other = services["two" if leader == "one" else "one"]
    services[leader].signal(signal.SIGSTOP)
    began = time.monotonic()
    try:
        wait_for(lambda: _lease(scene)[1] > epoch, 60, "the other one leads")
        taken_over = time.monotonic() - began
        time.sleep(rng.uniform(0, 3))
    finally:
        with suppress(ProcessLookupError):
            services[leader].signal(signal.SIGCONT)
    scene.service = other
    for submitted in scene.runs:
        other.wait_status(submitted.run_id, "completed")
    wrong = scene.rows(
        "SELECT * FROM watched WHERE NOT EXISTS "
        "(SELECT 1 FROM held WHERE held.epoch = watched.epoch AND held.who = watched.who)"
    )
    assert not wrong, f"it started runs in an epoch that was not its own: {wrong[:3]}"
    assert scene.rows("SELECT 1 FROM watched"), "nothing was watched"
    return taken_over


FAULTS = [
    Fault(
        "F4",
        "leader of two stopped beyond its lease, then continued",
        30,
        leader_stands_still,
        alone=True,
        databases=(POSTGRESQL,),
        settings={"leader_lease_s": LEASE_S},
        shortened=f"lease of the leader 15 s to {LEASE_S} s",
        open=open_two,
    ),
]
