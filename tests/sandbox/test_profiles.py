"""Programs that may start processes and write files: the honest ones work, the hostile ones stay contained."""

from collections.abc import Callable

import pytest

from tests.sandbox.conftest import Results
from tests.sandbox.hostile import HOSTILE
from tests.sandbox.profiles import HOSTILE_PROFILES, ORDINARY_PROFILES, PERMITTED
from tests.sandbox.test_programs import AFTERMATH

ENVIRONMENTS = ["host-root", "host-user", pytest.param("container", marks=pytest.mark.engine)]

Happened = Callable[[str], Results]
everywhere = pytest.mark.parametrize("environment", ENVIRONMENTS, scope="session")


@everywhere
@pytest.mark.parametrize("name", [item.name for item in HOSTILE_PROFILES])
def test_hostile_is_contained(environment: str, name: str, happened_with_profiles: Happened) -> None:
    outcome = happened_with_profiles(environment)["hostile", name]
    assert outcome["passed"], outcome


@everywhere
@pytest.mark.parametrize("name", [item.name for item in ORDINARY_PROFILES])
def test_ordinary_passes(environment: str, name: str, happened_with_profiles: Happened) -> None:
    outcome = happened_with_profiles(environment)["ordinary", name]
    assert outcome["passed"], outcome


@everywhere
@pytest.mark.parametrize("fact", [*AFTERMATH, "working folders are gone"])
def test_nothing_survives(environment: str, fact: str, happened_with_profiles: Happened) -> None:
    outcome = happened_with_profiles(environment)["aftermath", fact]
    assert outcome["passed"], outcome


def test_the_strict_suite_stays_contained(happened_with_profiles: Happened) -> None:
    results = happened_with_profiles("host-root")
    assert [line for (kind, _), line in results.items() if kind in ("hostile", "cheat") and not line["passed"]] == []


def test_what_is_permitted_exists() -> None:
    assert frozenset().union(*PERMITTED.values()) <= {item.name for item in HOSTILE}
