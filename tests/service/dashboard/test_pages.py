"""The pages of the whole service: every one opens, forms work without script, foreign text stays text."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest
from sqlmodel import Session

from orchestrator.alerts.tables import Alert
from orchestrator.dashboard.assets import version
from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.runs.tables import ContainerRun
from orchestrator.settings import Settings
from tests.served import TOKEN, Service, http_runner, served
from tests.service.dashboard.hostile_texts import EVERYTHING, assert_harmless
from tests.service.dashboard.stepwise_runner import story_runner
from tests.service.datasets.test_routes import added

pytestmark = pytest.mark.anyio
SAME = {"sec-fetch-site": "same-origin"}
PAGES = [
    "/",
    "/runs",
    "/runs/new",
    "/runs/new/command",
    "/runs/new/harness",
    "/compare",
    "/leaderboard",
    "/models",
    "/datasets",
    "/datasets/sample",
    "/fleet",
    "/docs",
    "/login",
]
PAGES += ["/eval-sets", "/jobs", "/batches", "/schedules", "/schedules/new", "/settings"]


@asynccontextmanager
async def browser(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=service.url, headers=SAME, timeout=60) as client:
        answer = await client.post("/login", data={"token": TOKEN})
        assert answer.status_code == 303
        yield client


async def test_every_page_opens_when_there_is_nothing_yet(service: Service) -> None:
    async with browser(service) as client:
        for path in PAGES:
            answer = await client.get(path)
            assert answer.status_code == 200, path
            assert_harmless(answer.text)
            assert "unsafe" not in answer.headers["content-security-policy"]


async def test_strangers_are_sent_to_sign_in(service: Service) -> None:
    for path in ["/", "/runs", "/runs/x/items/1", "/models"]:
        answer = await service.stranger.get(path)
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/login")
    assert (await service.stranger.post("/login", data={"token": "wrong"})).status_code == 401
    assert (await service.stranger.post("/models", data={"slug": "x"})).status_code == 401


async def test_a_form_of_another_site_is_refused(service: Service) -> None:
    async with browser(service) as client:
        answer = await client.post("/runs/new", data={"model": "demo-strong"}, headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 403


async def test_a_batch_on_its_pages(service: Service) -> None:
    body = {"models": ["demo-strong"], "benchmarks": ["sample"], "sample_size": 2, "instance_types": ["lite", "basic"]}
    made = (await service.client.post("/api/batches", json={**body, "name": "<b>nightly</b>"})).json()
    detail = (await service.client.get(f"/api/batches/{made['batch_id']}")).json()
    for member in [member for group in detail["instance_types"] for member in group["members"]]:
        await service.until(member["run_id"], "completed")
    async with browser(service) as client:
        place = f"/batches/{made['batch_id']}"
        listed, shown = await client.get("/batches"), await client.get(place)
        for page in (listed, shown):
            assert page.status_code == 200, page.text
            assert_harmless(page.text)
            assert "&lt;b&gt;nightly" in page.text
        assert shown.text.count("50.0 %") >= 2, "a score for each instance type"
        assert "verdicts differ" in shown.text
        assert (await client.post(f"{place}/end", data={"mode": "stop"})).status_code == 303
        assert (await client.get("/batches/nothing")).status_code == 404


async def test_a_run_from_the_form_to_its_pages(service: Service) -> None:
    async with browser(service) as client:
        form = {"model": "demo-strong", "sample_size": "4", "benchmark": "sample", "seed": "3", "key": "k1"}
        answer = await client.post("/runs/new", data=form)
        assert answer.status_code == 303, answer.text
        place = answer.headers["location"]
        assert (await client.post("/runs/new", data=form)).headers["location"] == place  # pressed twice
        run_id = place.rpartition("/")[2]
        await service.until(run_id, "completed")

        for path in [place, f"{place}?outcome=passed", f"{place}/items/0", "/", "/runs", "/leaderboard", "/fleet"]:
            page = await client.get(path)
            assert page.status_code == 200, path
            assert_harmless(page.text)
        assert "50.0 %" in (await client.get(place)).text
        shown = (await client.get(place)).text
        for format in ("csv", "jsonl", "parquet", "junit", "inspect", "json"):
            link = f"/api/container-runs/{run_id}/export?format={format}"
            assert link in shown
            assert (await client.get(link)).status_code == 200
        assert (await client.get(f"{place}/items/0/answer")).headers["content-type"].startswith("text/plain")
        assert (await client.get("/runs?status=failed&benchmark=sample")).text.count("demo-strong") < 3
        again = await client.post(f"{place}/retry")
        assert again.status_code == 409
        assert "has every result already" in again.text


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"model": "demo-strong", "sample_size": "99999"}, "36"),
        ({"model": "demo-strong", "sample_size": "many"}, "sample_size"),
        ({"model": "demo-strong", "sample_size": "-3"}, "sample_size"),
        ({"model": "<b>no</b>", "sample_size": "1"}, "no model"),
        ({"model": "demo-strong", "sample_size": "1", "budget_usd": "nan"}, "budget_usd"),
        ({"model": "demo-strong", "sample_size": "1", "instance_type": "huge"}, "no instance type"),
        ({}, "sample_size"),
    ],
    ids=str,
)
async def test_a_wrong_form_says_what_is_wrong(service: Service, form: dict[str, str], said: str) -> None:
    async with browser(service) as client:
        answer = await client.post("/runs/new", data=form)
    assert answer.status_code == 422
    assert said in answer.text
    assert_harmless(answer.text)


async def test_the_form_says_what_the_run_will_give(service: Service) -> None:
    async with browser(service) as client:
        few = await client.get("/runs/new?model=demo-strong&sample_size=10&benchmark=sample")
        many = await client.get("/runs/new?model=demo-strong&sample_size=36&benchmark=sample")
    assert "± 26.3 points" in few.text
    assert "± 15.5 points" in many.text


async def test_models_are_added_priced_and_removed(service: Service) -> None:
    async with browser(service) as client:
        new = {"slug": "mine", "provider": "openai", "name": "x-1", "input_price": "3", "training_cutoff": "2025-01-31"}
        assert (await client.post("/models", data=new)).status_code == 303
        found = (await service.client.get("/api/models/mine")).json()
        assert (found["input_price"], found["output_price"], found["training_cutoff"]) == (3.0, None, "2025-01-31")
        prices = {"input_price": "2.5", "output_price": "10", "cached_input_price": "0.25", "cache_write_price": "3.75"}
        assert (await client.post(f"/models/{found['id']}/prices", data=prices)).status_code == 303
        priced = (await service.client.get("/api/models/mine")).json()
        assert {name: str(priced[name]).removesuffix(".0") for name in prices} == prices
        page = (await client.get("/models")).text
        assert "$2.50 in, $10.00 out, $0.25 cached in, $3.75 cache write" in page
        assert f'datetime="{priced["prices_entered_at"][:10]}' in page
        twice = await client.post("/models", data=new)
        assert twice.status_code == 422
        assert "already" in twice.text
        assert (await client.post(f"/models/{found['id']}/remove")).status_code == 303
        assert (await service.client.get("/api/models/mine")).status_code == 404


async def test_a_token_is_made_shown_once_and_revoked(service: Service) -> None:
    async with browser(service) as client:
        made = await client.post("/settings/tokens", data={"name": "<i>ci</i>", "scope": "run", "expires_in_days": "30"})
        assert made.status_code == 201
        assert_harmless(made.text)
        token = made.text.split('id="secret"')[1].split(">")[1].split("<")[0]
        bearer = {"authorization": f"Bearer {token}"}
        assert (await service.stranger.get("/api/models", headers=bearer)).status_code == 200
        again = await client.get("/settings")
        assert token not in again.text
        assert "&lt;i&gt;ci" in again.text
        twice = await client.post("/settings/tokens", data={"name": "<i>ci</i>"})
        assert twice.status_code == 422
        assert "already" in twice.text
        assert (await client.post("/settings/tokens", data={"name": "x", "scope": "root"})).status_code == 422
        (kept,) = (await service.client.get("/api/tokens")).json()["items"]
        assert (await client.post(f"/settings/tokens/{kept['id']}/revoke")).status_code == 303
        assert (await service.stranger.get("/api/models", headers=bearer)).status_code == 401


async def test_a_schedule_is_saved_paused_run_and_removed(service: Service) -> None:
    async with browser(service) as client:
        form = {"model": "demo-weak", "preset": "daily", "at": "06:15", "timezone": "Asia/Tokyo", "sample_size": "3"}
        saved = await client.post("/schedules/new", data=form)
        assert saved.status_code == 303, saved.text
        place = saved.headers["location"]
        assert "15 6 * * *" in (await client.get(place)).text
        assert (await client.get("/schedules/demo-weak")).headers["location"] == place
        assert (await client.get("/schedules/nobody")).status_code == 404
        assert (await client.get("/schedules/new?model=demo-weak")).text.count("15 6 * * *") == 2
        assert (await client.post(f"{place}/pause?paused=true")).status_code == 303
        assert "paused" in (await client.get("/schedules")).text
        started = await client.post(f"{place}/run")
        await service.until(started.headers["location"].rpartition("/")[2], "completed")
        for path in ["/schedules", place, "/"]:
            assert_harmless((await client.get(path)).text)
        assert (await client.post(f"{place}/remove")).status_code == 303
        assert (await client.get(place)).status_code == 404


async def test_the_form_of_a_schedule_starts_with_as_many_problems_as_there_are(service: Service) -> None:
    definition = {"name": "sums", "records": [{"input": f"{n}+1", "target": n + 1} for n in range(3)], "judge": "number"}
    assert (await service.client.post("/api/benchmarks", json={"definition": definition})).status_code == 202
    await added(service, "sums")
    async with browser(service) as client:
        assert "/schedules/new?benchmark=sums&amp;sample_size=3" in (await client.get("/benchmarks/sums")).text
        form = (await client.get("/schedules/new?benchmark=sums")).text
    assert re.search(r'name="sample_size"[^>]* value="3"', form)


@pytest.mark.parametrize(
    "changed",
    [
        {"preset": "free", "cron": "61 * * * *"},
        {"preset": "monthly", "day": "99"},
        {"timezone": "Moon/Base"},
        {"sample_size": "x"},
    ],
    ids=str,
)
async def test_a_wrong_schedule_says_what_is_wrong(service: Service, changed: dict[str, str]) -> None:
    form = {"model": "demo-weak", "preset": "daily", "at": "06:15", "sample_size": "3", **changed}
    async with browser(service) as client:
        answer = await client.post("/schedules/new", data=form)
        preview = await client.get("/schedules/new", params=form)
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text
    assert preview.status_code == 200


async def test_what_is_not_there_is_a_page_for_people_and_json_for_programs(service: Service) -> None:
    async with browser(service) as client:
        for path in ["/runs/nope", "/nothing/here", "/runs/nope/items/0", "/compare?run=nope"]:
            answer = await client.get(path, headers={"accept": "text/html"})
            assert answer.status_code == 404
            assert_harmless(answer.text)
        assert (await client.get("/api/nope", headers={"accept": "text/html"})).json()["code"] == "NOT_FOUND"
        assert (await client.get("/nothing")).json()["code"] == "NOT_FOUND"


async def test_a_fault_of_ours_is_a_page(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(_page: object) -> None:
        raise RuntimeError("on purpose")

    async with browser(service) as client:
        monkeypatch.setattr("orchestrator.models.pages._show", broken)
        page = await client.get("/models", headers={"accept": "text/html"})
    assert page.status_code == 500
    assert "<h1>Internal error</h1>" in page.text
    assert "the log has it under request" in page.text
    assert "on purpose" not in page.text
    assert "script-src 'self';" in page.headers["content-security-policy"]


async def test_open_alerts_on_the_overview_name_their_model_once(service: Service) -> None:
    def add(session: Session) -> None:
        at = service.clock.now()
        for kind, title in (("drift.worse", "worse than before"), ("schedule.missed", "2 scheduled runs missed.")):
            alert = Alert(uid=kind, model_id=1, kind=kind, title=f"demo-strong: {title}", at=at)
            session.add(alert)

    await service.services.db.write(add)
    async with browser(service) as client:
        page = (await client.get("/")).text
        model = (await client.get("/models/demo-strong")).text
    for shown in (page, model):
        assert "Worse than before" in shown
        assert "demo-strong: " not in shown
        assert shown.count(">What changed</a>") == 1
        assert shown.count(">Details</a>") == 1


async def test_a_run_that_its_budget_stopped_is_no_completed_job(service: Service) -> None:
    run_id = await service.new_run()
    await service.until(run_id, "completed")

    def stop(session: Session) -> None:
        run = session.get(ContainerRun, run_id)
        assert run is not None
        run.reason, run.error_message = "budget_exhausted", "Stopped at the budget of the run ($0.02)"
        session.add(run)

    await service.services.db.write(stop)
    async with browser(service) as client:
        for path in ("/jobs", "/runs", "/"):
            page = (await client.get(path)).text
            assert "stopped at budget</span>" in page, path
            assert 'status completed"' not in page, path


async def test_what_a_model_writes_stays_text(new_settings: Callable[..., Settings]) -> None:
    engine = FakeEngine(behaviour=story_runner(text=EVERYTHING))
    async with served(new_settings(), engine=engine) as service, browser(service) as client:
        await service.client.post(
            "/api/models",
            json={"slug": "evil", "provider": "demo", "name": EVERYTHING[:200], "display_name": EVERYTHING[:200]},
        )
        runs = [await service.new_run(model_id="evil", sample_size=4) for _ in range(2)]
        for run_id in runs:
            await service.until(run_id, "completed")
        await asyncio.sleep(0.3)  # the engine's log tail comes a moment later
        first = f"/runs/{runs[0]}"
        pair = f"/compare?run={runs[0]}&run={runs[1]}"
        shown = (await service.client.get(f"/api/container-runs/{runs[0]}/items")).json()["items"][2]
        both = f"run={runs[0]}&run={runs[1]}&benchmark={shown['benchmark']}&problem={shown['problem_id']}"
        pages = ["/", "/runs", first, f"{first}/items/2", pair, f"/compare/answers?{both}"]
        for path in [*pages, "/models", "/leaderboard", "/runs/new?model=evil"]:
            page = await client.get(path)
            assert page.status_code == 200, path
            assert_harmless(page.text)
            assert "<script>window" not in page.text
        whole = await client.get(f"{first}/items/2/answer")
        assert "<script>" in whole.text
        assert whole.headers["content-type"].startswith("text/plain")
        assert "sandbox" in whole.headers["content-security-policy"]
        await engine.end_all()


async def test_a_regrade_says_which_verdicts_moved(new_settings: Callable[..., Settings]) -> None:
    engine = FakeEngine(behaviour=story_runner())
    async with served(new_settings(), engine=engine) as service, browser(service) as client:
        run_id = await service.new_run(sample_size=4)
        await service.until(run_id, "completed")
        assert "Regrade" in (await client.get(f"/runs/{run_id}")).text

        same = (await client.post(f"/runs/{run_id}/regrade")).headers["location"]
        await service.until(same.rpartition("/")[2], "completed")
        assert "No verdict changed." in (await client.get(same)).text

        engine.behaviour = http_runner  # which passes every second item
        other = (await client.post(f"/runs/{run_id}/regrade")).headers["location"]
        await service.until(other.rpartition("/")[2], "completed")
        page = (await client.get(other)).text
        assert "4 verdicts changed." in page
        assert f'href="/runs/{run_id}"' in page
        await engine.end_all()


async def test_a_huge_answer_keeps_the_page_small(new_settings: Callable[..., Settings]) -> None:
    engine = FakeEngine(behaviour=story_runner(text="long line of an answer\n" * 50_000))
    async with served(new_settings(), engine=engine) as service, browser(service) as client:
        run_id = await service.new_run(sample_size=3)
        await service.until(run_id, "completed")
        assert len((await client.get(f"/runs/{run_id}")).content) < 200_000
        item = await client.get(f"/runs/{run_id}/items/2")
        assert len(item.content) < 400_000
        assert "Full text" in item.text
        assert len((await client.get(f"/runs/{run_id}/items/2/answer")).content) > 1_000_000
        await engine.end_all()


async def test_links_begin_with_the_path_of_the_public_address(new_settings: Callable[..., Settings]) -> None:
    async with served(new_settings(public_url="https://lab.example/bench/")) as service, browser(service) as client:
        page = (await client.get("/bench/runs")).text
        assert 'href="/bench/runs/new"' in page
        assert 'href="/' not in page.replace('href="/bench/', "")
        assert f'src="/bench/static/{version()}/app.js"' in page
        await service.engine.end_all()


async def test_reloading_the_answer_of_a_form_shows_its_page(service: Service) -> None:
    async with browser(service) as client:
        made = await client.post("/settings/tokens", data={"name": "reloaded", "scope": "read"})
        assert made.status_code == 201
        again = await client.get("/settings/tokens", headers={"accept": "text/html"})
        assert (again.status_code, again.headers["location"]) == (303, "/settings")
        missing = await client.get("/runs/nothing", headers={"accept": "text/html"})
        assert missing.status_code == 404
        assert "/api/" not in missing.text.split("<main", 1)[1]


async def test_the_older_run_comes_first_unless_another_is_the_baseline(service: Service) -> None:
    older = await service.new_run(sample_size=4)
    service.clock.advance(1)
    newer = await service.new_run(sample_size=4)
    other = await service.new_run(model_id="demo-weak", sample_size=4)
    for run_id in (older, newer, other):
        await service.until(run_id, "completed")

    def order(text: str) -> list[str]:
        places = {run_id: text.find(f'<a href="/runs/{run_id}">') for run_id in (older, newer)}
        return sorted(places, key=lambda run_id: places[run_id])

    async with browser(service) as client:
        assert order((await client.get(f"/compare?run={newer}&run={older}")).text) == [older, newer]
        assert order((await client.get(f"/compare?baseline={newer}&run={older}")).text) == [newer, older]
        two_models = (await client.get(f"/compare?run={older}&run={other}")).text
        assert "4 shared problems: A passes" in two_models
        assert 'class="tag broken"' not in two_models, "neither model is wrong because the other is right"
        missing = await client.get(f"/compare/answers?run={older}&run={newer}&benchmark=sample&problem=none")
        assert missing.status_code == 404
        assert (await client.get(f"/compare/answers?run={older}&benchmark=sample&problem=none")).status_code == 422


async def test_the_page_of_an_item_shows_its_thinking_and_runs_it_again(new_settings: Callable[..., Settings]) -> None:
    engine = FakeEngine(behaviour=story_runner())
    async with served(new_settings(), engine=engine) as service, browser(service) as client:
        run_id = await service.new_run(sample_size=4)
        await service.until(run_id, "completed")
        page = (await client.get(f"/runs/{run_id}/items/2")).text
        assert_harmless(page)
        assert "First, the sum of $n$." in page
        assert 'class="statement"' in page
        assert 'data-go="prev"' in page
        assert "This problem in other runs" in page
        assert (await client.get(f"/runs/{run_id}/items/2/thinking")).text.startswith("First, the sum")
        again = await client.post(f"/runs/{run_id}/items/2/again")
        assert again.status_code == 303, again.text
        new = await service.until(again.headers["location"].rpartition("/")[2], "completed")
        assert (new["sample_size"], new["progress"]["total"]) == (1, 1)
        both = (await client.get(f"/runs/{run_id}/items/2")).text
        assert both.count('class="cell ') == 2
        assert (await client.post(f"/runs/{run_id}/items/9/again")).status_code == 404
        await engine.end_all()
