"""Pages of evals in a real browser: accessible and fitting in light and dark, labelling and deciding by keyboard, what is
said when the service does not answer, an import with its report."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from orchestrator.traces.sample import sample_traces
from tests.e2e.browsing import Site, Visitor, assert_accessible, look_at, open_site, until
from tests.served import RunnerClient
from tests.service.evals.eval_runner import EvalRunner

pytestmark = pytest.mark.browser

ROUND = {"turn": 0, "code": "def evaluate(:", "problem": "it is not valid Python: invalid syntax (line 1)"}


class Runner(EvalRunner):
    """Tells of a refused answer first, and then waits for `go`."""

    def __init__(self) -> None:
        super().__init__()
        self.slow = False
        self.go = False

    async def _generate(self, runner: RunnerClient) -> None:
        if self.slow:
            await self._post(runner, runner.next("job_progress", stage="validating_code", percent=60, round=ROUND))
            asked = runner.next("job_progress", stage="calling_llm", percent=20, detail="repair 1 of 3")
            await self._post(runner, asked)
            while not self.go:
                await asyncio.sleep(0.05)
        await super()._generate(runner)


RUNNER = Runner()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, data_template: Path) -> Iterator[Site]:
    with open_site(tmp_path_factory.mktemp("evals"), data_template, RUNNER) as it:
        yield it


def rows(count: int, labelled: int, seed: int) -> str:
    found: list[dict[str, Any]] = list(sample_traces(count, seed))
    for row in found[labelled:]:
        row.pop("label")
    return "".join(json.dumps(row) + "\n" for row in found)


def a_set(api: httpx.Client, name: str, count: int = 16, labelled: int = 12, seed: int = 0) -> str:
    made = api.post("/api/eval-sets", json={"name": name, "description": "The answer helps.", "project": name}).json()
    query = {"eval_set_id": made["id"], "project": name}
    assert api.post("/api/traces", params=query, content=rows(count, labelled, seed)).status_code == 201
    return str(made["id"])


def over(api: httpx.Client, job_id: str) -> dict[str, Any]:
    until(lambda: api.get(f"/api/jobs/{job_id}").json()["status"] in ("completed", "failed", "cancelled"))
    return dict(api.get(f"/api/jobs/{job_id}").json())


def an_eval(api: httpx.Client, set_id: str) -> tuple[str, str]:
    job = over(api, api.post(f"/api/eval-sets/{set_id}/generate", json={"model_id": "demo-strong"}).json()["job_id"])
    over(api, api.post(f"/api/evals/{job['eval_id']}/execute").json()["job_id"])
    return job["eval_id"], job["id"]


def rating(api: httpx.Client, set_id: str, trace_id: str) -> str | None:
    said = api.get(f"/api/traces/{trace_id}", params={"eval_set_id": set_id}).json()["feedback"]
    return said["rating"] if said else None


def trace(page: Page) -> str:
    return page.locator("#trace").get_attribute("data-trace") or ""


def test_labelling_by_keyboard(visit: Callable[..., Visitor], site: Site, api: httpx.Client) -> None:
    set_id = a_set(api, "keys", count=8, labelled=2, seed=1)
    visitor = visit()
    page = visitor.page
    page.goto(f"{site.url}/eval-sets/{set_id}")
    page.get_by_role("link", name="Label traces").first.click()
    expect(page.get_by_role("button", name="Keys")).to_be_visible()
    page.evaluate("window.same = true")
    expect(page.locator("#trace")).to_have_attribute("data-trace", "shop-1-000002")
    page.keyboard.press("p")
    expect(page.locator("#trace")).to_have_attribute("data-trace", "shop-1-000003")
    page.keyboard.press("m")
    page.keyboard.type("n, or so it seems")  # a key that is typed is no command
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page.locator("#trace")).to_have_attribute("data-trace", "shop-1-000004")
    page.keyboard.press("s")
    expect(page.locator("#trace")).to_have_attribute("data-trace", "shop-1-000005")
    page.keyboard.press("n")
    expect(page.locator("#trace")).to_have_attribute("data-trace", "shop-1-000006")
    page.keyboard.press("u")
    expect(page.locator("#trace")).to_have_attribute("data-trace", "shop-1-000005")
    until(lambda: rating(api, set_id, "shop-1-000005") is None)
    assert [rating(api, set_id, f"shop-1-{n:06d}") for n in (2, 3, 4)] == ["positive", "negative", None]
    assert (
        api.get("/api/traces/shop-1-000003", params={"eval_set_id": set_id}).json()["feedback"]["note"]
        == "n, or so it seems"
    )
    expect(page.locator("[data-labelled]")).to_have_text("4")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#trace")).to_have_attribute("data-trace", "shop-1-000004")
    assert page.url.endswith("/label?trace=shop-1-000004"), "a link to the trace that is shown"
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("undo the last label")
    assert_accessible(page)
    page.keyboard.press("Escape")
    assert page.evaluate("window.same") is True

    # The service does not answer: it is said, and sent again
    def refuse(route: Route) -> None:
        route.abort()

    page.route("**/feedback", refuse)
    page.get_by_role("button", name="Positive").click()
    expect(page.get_by_role("alert").filter(has_text="not saved")).to_contain_text("shop-1-000004")
    assert rating(api, set_id, "shop-1-000004") is None
    page.unroute("**/feedback", refuse)
    assert [each for each in visitor.complaints if "ERR_FAILED" not in each] == []
    visitor.complaints.clear()
    expect(page.locator("#trace")).to_have_attribute("data-trace", "shop-1-000005")
    page.get_by_role("button", name="Retry").click()
    until(lambda: rating(api, set_id, "shop-1-000004") == "positive")
    for _ in range(3):
        shown = page.locator("#trace").get_attribute("data-trace")
        page.keyboard.press("n")
        expect(page.locator(f'#trace[data-trace="{shown}"]')).to_have_count(0)
    expect(page.get_by_role("heading", name="All traces are labelled")).to_be_visible()


def test_contradictions_by_keyboard_and_button(visit: Callable[..., Visitor], site: Site, api: httpx.Client) -> None:
    set_id = a_set(api, "against", seed=2)
    eval_id, _ = an_eval(api, set_id)
    wrong = ["shop-2-000000", "shop-2-000002", "shop-2-000004"]
    for each in wrong:
        api.post(f"/api/eval-sets/{set_id}/feedback", json={"trace_id": each, "rating": "negative"})
    page = visit().page
    page.goto(f"{site.url}/evals/{eval_id}")
    page.get_by_role("link", name=re.compile("^Contradictions")).click()
    expect(page.get_by_role("button", name="Keys")).to_be_visible()
    cards = page.locator("article[data-trace]")
    expect(cards).to_have_count(3)
    page.keyboard.press("e")
    expect(page.locator("[data-held]")).to_have_text("1")
    page.keyboard.press("l")
    expect(page.locator("[data-all]")).to_have_text("2")
    assert rating(api, set_id, wrong[1]) == "positive"
    cards.nth(1).get_by_role("button", name="Undo").click()
    expect(page.locator("[data-all]")).to_have_text("3")
    assert rating(api, set_id, wrong[1]) == "negative"
    cards.nth(2).get_by_role("button", name="My label was wrong").click()
    expect(page.locator("[data-all]")).to_have_text("2")
    row = api.get(f"/api/evals/{eval_id}").json()
    assert (row["contradiction_count"], row["disputed_count"]) == (2, 1)
    page.reload()
    expect(cards).to_have_count(1)
    assert_accessible(page)


def test_an_import_and_a_generation_live(
    visit: Callable[..., Visitor], site: Site, api: httpx.Client, tmp_path: Path
) -> None:
    page = visit().page
    page.goto(f"{site.url}/eval-sets")
    page.get_by_label("Name").fill("imported")
    page.get_by_label("What makes a trace good?").fill("It helps.")
    page.get_by_role("button", name="Create eval set").click()
    file = tmp_path / "traces.jsonl"
    file.write_text(rows(10, 10, 3) + "{oops\n" + json.dumps({"id": "x"}) + "\n")
    page.locator("#i-file").set_input_files(file)
    page.get_by_role("button", name="Import", exact=True).click()
    report = page.locator("[data-report]")
    expect(report).to_contain_text("10 new traces, 0 unchanged, 10 labels imported, 2 lines skipped")
    expect(report).to_contain_text("Line 11: not JSON")
    expect(page.locator("#trace-list tbody tr").first).to_be_visible()
    assert_accessible(page)

    RUNNER.slow, RUNNER.go = True, False
    page.get_by_role("link", name="Write an eval", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("#eval-quote")).to_contain_text("held out")
    dialog.get_by_label("Model").select_option("demo-weak")
    dialog.get_by_role("button", name="Write eval").click()
    page.wait_for_url(re.compile(r"/jobs/[0-9a-f-]{36}$"))
    page.evaluate("window.same = true")
    expect(page.locator("[data-repair]")).to_have_text("Repair 1 of 3")
    expect(page.locator("li[data-stage=calling_llm]")).to_have_attribute("aria-current", "step")
    expect(page.locator("#rounds")).to_contain_text("it is not valid Python: invalid syntax")
    try:
        look_at(page, "job-live")
    finally:
        RUNNER.slow, RUNNER.go = False, True
    expect(page.locator("#job-state .banner")).to_contain_text("saved")
    assert page.evaluate("window.same") is True


def test_every_page_of_evals_is_accessible_and_fits(visit: Callable[..., Visitor], site: Site, api: httpx.Client) -> None:
    set_id = a_set(api, "looks", seed=4)
    long = {"id": "long-" + "id" * 60, "project": "looks", "input": [{"role": "user", "content": "Why? " * 900}]}
    long |= {"output": {"answer": ["x" * 300] * 30}, "steps": [{"name": "s" * 100, "error": "e" * 300}], "label": "positive"}
    api.post("/api/traces", params={"eval_set_id": set_id, "project": "looks"}, content=json.dumps(long))
    eval_id, job_id = an_eval(api, set_id)
    code = api.get(f"/api/evals/{eval_id}").json()["code"]
    over(api, api.patch(f"/api/evals/{eval_id}", json={"code": code}).json()["job_id"])
    for number in (0, 2):
        body = {"trace_id": f"shop-4-{number:06d}", "rating": "negative", "note": "rude " * 50}
        api.post(f"/api/eval-sets/{set_id}/feedback", json=body)
    api.post(f"/api/evals/{eval_id}/contradictions", json={"trace_id": "shop-4-000000", "wrong": "eval"})
    newest = api.get("/api/evals", params={"eval_set_id": set_id}).json()["items"][0]["id"]
    page = visit().page
    label = f"/eval-sets/{set_id}/label?show=&trace="
    pages = {"eval-sets": "/eval-sets", "eval-set": f"/eval-sets/{set_id}", "label": f"{label}{long['id']}"}
    pages |= {"generate": f"/eval-sets/{set_id}/generate"}
    pages |= {"eval": f"/evals/{eval_id}?against={newest}", "contradictions": f"/evals/{eval_id}/contradictions?show=all"}
    pages |= {
        "eval-code": f"/evals/{eval_id}/code",
        "jobs": "/jobs",
        "job": f"/jobs/{job_id}",
        "eval-run": f"/runs/{job_id}",
    }
    for name, path in pages.items():
        answer = page.goto(site.url + path)
        assert answer is not None
        assert answer.status == 200, path
        look_at(page, name)
