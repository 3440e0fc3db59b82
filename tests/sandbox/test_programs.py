"""The published suites: every hostile program contained, every cheat without points, every ordinary program right."""

from collections.abc import Callable

import pytest

from runner.sandbox.kernel import landlock
from tests.sandbox.cheats import CHEATS
from tests.sandbox.conftest import ENVIRONMENTS, Results
from tests.sandbox.hostile import HOSTILE
from tests.sandbox.ordinary import ORDINARY
from tests.sandbox.programs import Ordinary

LEVELS = {
    "host-root": "full",
    "host-user": "shared-uid",
    "host-user-no-landlock": "minimal",
    "container": "full",
    "container-user": "shared-uid",
}
AFTERMATH = (
    "nobody reached a canary",
    "no process is left",
    "no file, shared memory, semaphore or queue is left",
    "descriptors came back",
    "the sandbox still works",
)

pytestmark = pytest.mark.parametrize("environment", ENVIRONMENTS, scope="session")
Happened = Callable[[str], Results]


def test_suites_are_as_large_as_promised(environment: str) -> None:
    assert len(HOSTILE) >= 150
    assert len(CHEATS) >= 30
    assert len(ORDINARY) >= 60


def test_level_is_named(environment: str, happened: Happened) -> None:
    levels = {name: line for (kind, name), line in happened(environment).items() if kind == "level"}
    assert list(levels) == [LEVELS[environment]]


@pytest.mark.parametrize("name", [item.name for item in HOSTILE])
def test_hostile_is_contained(environment: str, name: str, happened: Happened) -> None:
    outcome = happened(environment)["hostile", name]
    assert outcome["passed"], outcome


@pytest.mark.parametrize("name", [item.name for item in CHEATS])
def test_cheat_scores_nothing(environment: str, name: str, happened: Happened) -> None:
    outcome = happened(environment)["cheat", name]
    assert outcome["passed"], outcome


@pytest.mark.parametrize("mode", ["stdin", "calls", "check"])
def test_honest_program_scores(environment: str, mode: str, happened: Happened) -> None:
    outcome = happened(environment)["honest", mode]
    assert outcome["passed"], outcome


@pytest.mark.parametrize("item", ORDINARY, ids=lambda item: item.name)
def test_ordinary_passes(environment: str, item: Ordinary, happened: Happened) -> None:
    results = happened(environment)
    outcome = results.get(("ordinary", item.name))
    if outcome is None:
        # The suite leaves out what can't work there: numpy that is not installed, files where none can be opened, streams
        # that are opened for writing by their name under an old Landlock.
        old = landlock.abi() < landlock.FOR_WRITING
        assert item.numpy or (item.needs_open and ("level", "minimal") in results) or (item.needs_writing and old)
        return
    assert outcome["passed"], outcome


@pytest.mark.parametrize("fact", AFTERMATH)
def test_nothing_survives(environment: str, fact: str, happened: Happened) -> None:
    outcome = happened(environment)["aftermath", fact]
    assert outcome["passed"], outcome
