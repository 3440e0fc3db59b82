"""The whole story of evals by page, against the real service with real containers and the demo provider's recorded answers:
make a set, import, label by keyboard, have evals written with live stages (a good one, one that needs repairs, four that
are refused), read the code, execute, and decide contradictions both ways."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from orchestrator.traces.sample import sample_traces
from tests.e2e.browsing import chromium, keep_picture, visiting
from tests.faults.service import TOKEN, Service, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.engine, pytest.mark.slow]

JOB_PAGE = re.compile(r"/jobs/[0-9a-f-]{36}$")
REFUSED = {
    "demo-eval-syntax": "not valid Python",
    "demo-eval-import": "imports subprocess",
    "demo-eval-constant": "constant",
    "demo-eval-hostile": "no verdict",
}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    it = Service(tmp_path / "data", reconcile_s=0.5, demo_latency_s=0.3)
    try:
        it.start()
        yield it
    finally:
        it.close()


def traces(path: Path) -> Path:
    rows: list[dict[str, Any]] = list(sample_traces(30))
    for row in rows[16:]:
        row.pop("label")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{oops\n")
    return path


def test_the_whole_story(service: Service, tmp_path: Path) -> None:
    with chromium() as browser, visiting(browser, service.url) as visitor:
        page = visitor.page
        page.on("dialog", lambda question: question.accept())
        page.goto(f"{service.url}/login?token={TOKEN}")
        set_page = a_set_with_traces(page, service, tmp_path)
        labelled_by_keyboard(page)
        refused = [asked_for(page, set_page, model) for model in REFUSED]
        written_live(page, set_page)
        judged_and_contradicted(page, service, set_page)
        for job_page, words in zip(refused, REFUSED.values(), strict=True):
            page.goto(job_page)
            expect(page.locator("#job-state .status")).to_have_text("failed")
            expect(page.locator("#job-state .banner")).to_contain_text(words)
            expect(page.locator("#rounds")).to_contain_text("rejected")
        keep_picture(page, "evals-5-refused")
        page.goto(f"{service.url}/jobs?type=eval_generate&status=failed")
        expect(page.locator("#jobs tbody tr")).to_have_count(len(REFUSED))
    wait_for(lambda: not service.containers(all_states=True), 20, "no container is left")


def a_set_with_traces(page: Page, service: Service, tmp_path: Path) -> str:
    page.goto(f"{service.url}/eval-sets")
    page.get_by_label("Name").fill("helpful")
    page.get_by_label("What makes a trace good?").fill("The answer helps the customer with what was asked.")
    page.get_by_role("button", name="Create eval set").click()
    page.wait_for_url(re.compile(r"/eval-sets/[0-9a-f-]{36}$"))
    page.locator("#i-file").set_input_files(traces(tmp_path / "traces.jsonl"))
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator("[data-report]")).to_contain_text("30 new traces, 0 unchanged, 16 labels imported, 1 line skipped")
    keep_picture(page, "evals-1-imported")
    return page.url.split("#")[0]


def labelled_by_keyboard(page: Page) -> None:
    page.get_by_role("link", name="Label traces").first.click()
    expect(page.get_by_role("button", name="Keys")).to_be_visible()
    for number in range(16, 20):
        expect(page.locator("#trace")).to_have_attribute("data-trace", f"shop-0-{number:06d}")
        page.keyboard.press("n" if number % 2 else "p")
    expect(page.locator("[data-labelled]")).to_have_text("20")
    keep_picture(page, "evals-2-labelling")


def asked_for(page: Page, set_page: str, model: str) -> str:
    page.goto(set_page)
    expect(page.locator("#theme")).to_be_visible()
    page.get_by_role("link", name="Write an eval", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Model").select_option(model)
    dialog.get_by_role("button", name="Write eval").click()
    page.wait_for_url(JOB_PAGE)
    return page.url


WATCH = """() => {
  const note = () => window.seen.push(document.querySelector("[data-repair]")?.textContent);
  window.seen = [];
  const all = { subtree: true, childList: true, characterData: true };
  new MutationObserver(note).observe(document.getElementById("job-state"), all);
}"""


def written_live(page: Page, set_page: str) -> None:
    asked_for(page, set_page, "demo-weak")
    page.evaluate(WATCH)
    expect(page.locator("#rounds")).to_contain_text("it is not valid Python")
    keep_picture(page, "evals-3-live")
    expect(page.locator("#job-state .banner")).to_contain_text("Version 1 of helpful saved")
    assert "Repair 1 of 3" in page.evaluate("window.seen"), "shown live, and the page was never loaded again"
    asked_for(page, set_page, "demo-strong")
    expect(page.locator("#job-state .banner")).to_contain_text("8 / 8 held-out")


def judged_and_contradicted(page: Page, service: Service, set_page: str) -> None:
    page.locator("#job-state .banner").get_by_role("link").click()
    expect(page.locator("#code-text")).to_contain_text("def evaluate(trace)")
    expect(page.locator("#theme")).to_be_visible()  # its script is there
    page.get_by_label("Compare with").select_option(label="version 1")
    expect(page.get_by_role("heading", name="Changes from version 1")).to_be_visible()
    page.get_by_role("button", name="Execute").click()
    expect(page.locator("#executed")).to_contain_text("30: 15 passed, 15 failed")
    eval_page = page.url.split("?")[0].split("#")[0]
    for trace in ("shop-0-000000", "shop-0-000002"):  # somebody changes their mind
        page.goto(f"{set_page}/label?show=&trace={trace}")
        expect(page.get_by_role("button", name="Keys")).to_be_visible()
        with page.expect_response(re.compile("/feedback$")):
            page.keyboard.press("n")
    page.goto(eval_page)
    page.get_by_role("link", name=re.compile("^Contradictions")).click()
    expect(page.get_by_role("button", name="Keys")).to_be_visible()
    expect(page.locator("article[data-trace]")).to_have_count(2)
    page.keyboard.press("e")
    expect(page.locator("[data-held]")).to_have_text("1")
    page.keyboard.press("l")
    expect(page.locator("[data-all]")).to_have_text("1")
    keep_picture(page, "evals-4-contradictions")
    row = service.client.get(f"/api/evals/{eval_page.rpartition('/')[2]}").json()
    assert (row["contradiction_count"], row["disputed_count"]) == (1, 1)
