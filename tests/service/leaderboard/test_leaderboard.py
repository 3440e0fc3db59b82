"""The leaderboard: places are ranges, ties are said, and chance does not separate equals."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from orchestrator.leaderboard.ranking import Entrant, _compared, holm, leaderboard
from orchestrator.stats.exchangeable import Blocks, tails

if TYPE_CHECKING:
    from tests.served import Service


def entrant(name: str, chance: float, rng: random.Random, problems: int = 100, samples: int = 1) -> Entrant:
    results = {("b", f"p{i}"): (samples, sum(rng.random() < chance for _ in range(samples))) for i in range(problems)}
    return Entrant(name, f"run-{name}", results)


def test_clear_differences_separate_and_ties_stay() -> None:
    rng = random.Random(1)
    places = leaderboard([entrant("low", 0.2, rng), entrant("a", 0.8, rng), entrant("b", 0.8, rng)])
    assert [place.model for place in places][-1] == "low"
    first, second, last = places
    assert (first.best, first.worst, first.group, first.tied_with) == (1, 2, 1, (second.model,))
    assert (second.best, second.worst, second.group) == (1, 2, 1)
    assert (last.best, last.worst, last.group, last.tied_with) == (3, 3, 2, ())
    assert first.score.low < first.score.estimate < first.score.high


def test_equals_are_rarely_told_apart() -> None:
    rng = random.Random(2)
    wrong = sum(
        any(place.group > 1 for place in leaderboard([entrant(f"m{i}", 0.6, rng, 60) for i in range(6)])) for _ in range(200)
    )
    assert wrong <= 0.05 * 200 + 5


def test_holm() -> None:
    p_values = {("a", "b"): 0.01, ("a", "c"): 0.02, ("b", "c"): 0.04}
    assert holm(p_values, 0.05) == {("a", "b"), ("a", "c"), ("b", "c")}
    assert holm({**p_values, ("a", "b"): 0.02}, 0.05) == set()


def test_few_problems_in_common_are_not_compared() -> None:
    one = Entrant("a", "r", {("b", f"p{i}"): (1, 1) for i in range(40)})
    other = Entrant("c", "r", {("b", f"q{i}"): (1, 0) for i in range(40)})
    assert [place.tied_with for place in leaderboard([one, other])] == [("c",), ("a",)]
    assert leaderboard([]) == []


@pytest.mark.anyio
async def test_over_http(service: Service) -> None:
    for model in ("demo-strong", "demo-weak"):
        await service.until(await service.new_run(model_id=model, sample_size=12), "completed")
    body = (await service.client.get("/api/leaderboard?benchmark=sample")).json()
    assert [(place["model"], place["best"], place["worst"]) for place in body["places"]] == [
        ("demo-strong", 1, 2),
        ("demo-weak", 1, 2),
    ]
    assert body["places"][0]["low"] < body["places"][0]["estimate"] < body["places"][0]["high"]
    assert (await service.client.get("/api/leaderboard?benchmark=nothing")).status_code == 404
    assert (await service.client.get("/api/leaderboard?after=2999-01-01")).json()["places"] == []


@pytest.mark.anyio
async def test_a_board_is_of_one_sample_and_says_which(service: Service) -> None:
    """A quick run that is newer takes nobody's place, and a model that has only a quick run gets none."""
    for model in ("demo-strong", "demo-weak"):
        await service.until(await service.new_run(model_id=model, sample_size=12), "completed")
    quick = await service.new_run(model_id="demo-strong", sample_size=3)
    await service.until(quick, "completed")
    third = {"slug": "third", "provider": "demo", "name": "demo-weak", "protocol": "openai_chat", "input_price": 0.0}
    assert (await service.client.post("/api/models", json={**third, "output_price": 0.0})).status_code == 201
    await service.until(await service.new_run(model_id="third", sample_size=3), "completed")
    body = (await service.client.get("/api/leaderboard?benchmark=sample")).json()
    assert (body["sample"]["problems"], body["sample"]["models"], body["window_problems"]) == (12, 2, 36)
    assert {(place["model"], place["problems"], place["results"]) for place in body["places"]} == {
        ("demo-strong", 12, 12),
        ("demo-weak", 12, 12),
    }
    assert quick not in [place["run_id"] for place in body["places"]]
    (rest,) = body["unranked"]
    assert rest["model"] == "third"
    assert rest["why"].endswith("of the 12 problems")
    few = next(each for each in body["samples"] if each["problems"] == 3)
    other = (await service.client.get(f"/api/leaderboard?benchmark=sample&sample={few['id']}")).json()
    assert {place["problems"] for place in other["places"]} == {3}
    assert (await service.client.get("/api/leaderboard?sample=nothing")).status_code == 422


def test_one_result_each_is_compared_as_by_the_general_test() -> None:
    rng = random.Random(3)
    one, other = ([(1, int(rng.random() < share)) for _ in range(60)] for share in (0.4, 0.7))
    gain, p_value = _compared(one, other)
    general = tails(Blocks(second[1], (first[1],)) for first, second in zip(one, other, strict=True))
    assert p_value == pytest.approx(2 * min(general))
    assert gain > 0
    assert _compared([(2, 1)] * 20, [(2, 2)] * 20)[0] > 0


def valued(name: str, mean: float, rng: random.Random, problems: int = 60) -> Entrant:
    results = {("b", f"p{i}"): (2, 2 * min(0.99, max(0.01, rng.gauss(mean, 0.1)))) for i in range(problems)}
    return Entrant(name, f"run-{name}", results)


def test_values_between_0_and_1_separate_models_that_never_pass() -> None:
    rng = random.Random(8)
    places = leaderboard([valued("low", 0.5, rng), valued("a", 0.6, rng), valued("b", 0.6, rng)])
    assert [place.model for place in places][-1] == "low"
    assert [place.group for place in places] == [1, 1, 2]
    assert {place.metric for place in places} == {"mean"}
    assert places[0].score.estimate == pytest.approx(0.6, abs=0.03)


def test_models_with_equal_values_are_rarely_told_apart() -> None:
    rng = random.Random(9)
    boards = [leaderboard([valued(f"m{i}", 0.6, rng, 30) for i in range(4)]) for _ in range(40)]
    assert sum(any(place.group > 1 for place in board) for board in boards) <= 5
