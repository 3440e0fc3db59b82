"""Stories of people who keep the dashboard open, in a real browser: watching a run to its end, going through its items by
keyboard, keeping a view of the list and tagging runs, and making a batch in the dialog."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.browsing import Site, Visitor, assert_accessible, finished_run, open_site, start_from_dialog
from tests.service.dashboard.stepwise_runner import Hold, story_runner

pytestmark = pytest.mark.browser
HOLD = Hold()


PAINTED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Chromium drops keys until it has painted a page."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, data_template: Path) -> Iterator[Site]:
    with open_site(tmp_path_factory.mktemp("stories"), data_template, story_runner(hold=HOLD)) as it:
        yield it


def test_a_run_is_watched_from_the_corner_of_the_eye(visit: Callable[..., Visitor]) -> None:
    page = visit().page
    HOLD.at = 6
    start_from_dialog(page, 12)
    slots = page.get_by_role("list", name="Items in work").get_by_role("listitem")
    expect(slots).to_have_count(6)
    expect(page.get_by_role("img", name=re.compile("^Timeline of 6 items"))).to_be_visible()
    expect(page).to_have_title(re.compile("^50 % · demo-strong on sample · running"))
    icon = page.locator("link[rel=icon]")
    expect(icon).to_have_attribute("href", re.compile("icon-running"))
    assert_accessible(page)
    HOLD.at = None
    expect(page.locator(".toast")).to_contain_text("Run completed: 66.7 %")
    expect(icon).to_have_attribute("href", re.compile("icon-completed"))
    expect(page).to_have_title(re.compile("completed"))
    assert_accessible(page)
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="Runs").click()
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()


def test_items_are_read_by_keyboard(visit: Callable[..., Visitor], site: Site, api: httpx.Client) -> None:
    run = finished_run(api, sample_size=6)
    page = visit().page
    page.goto(f"{site.url}/runs/{run}/items/0")
    place = page.get_by_role("navigation", name="Breadcrumb").locator("[aria-current]")
    copy = page.get_by_role("button", name="Copy").first
    for key, shown in (
        ("j", "item 2"),
        ("n", "item 3"),
        ("ArrowRight", "item 4"),
        ("n", "item 6"),
        ("p", "item 3"),
        ("k", "item 2"),
    ):
        expect(copy).to_be_visible()  # the page's script is there
        page.evaluate(PAINTED)
        page.keyboard.press(key)
        expect(place).to_contain_text(f"{shown} of 6")
    expect(copy).to_be_visible()
    page.evaluate(PAINTED)
    page.keyboard.press("j")
    expect(place).to_contain_text("item 3 of 6")
    page.get_by_role("link", name="Link to test 2").click()
    assert page.locator("details:target").count() == 1
    page.get_by_role("button", name="Run this item again").click()
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}$"))
    expect(page.locator("#state .status")).to_have_text("completed")
    expect(page.locator("#item-list tbody tr")).to_have_count(1)


def test_a_view_is_kept_and_runs_are_tagged(visit: Callable[..., Visitor], site: Site, api: httpx.Client) -> None:
    for model in ("demo-strong", "demo-weak"):
        finished_run(api, model_id=model, name=f"nightly {model}")
    page = visit().page
    page.on("dialog", lambda question: question.accept("Mine"))
    page.goto(f"{site.url}/runs")
    expect(page.locator("#pick-all")).to_be_visible()  # the page's script is there
    page.keyboard.press("/")
    page.keyboard.type("nightly")
    rows = page.locator("#runs tbody tr")
    expect(rows).to_have_count(2)
    assert page.url.endswith("/runs?q=nightly")
    page.get_by_role("button", name="Save view").click()
    page.locator("#q").blur()
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("#picked")).to_have_text("2 selected")
    page.get_by_label("Tags").fill("kept")
    page.get_by_role("button", name="Add tag").click()
    expect(rows.locator(".tag.word")).to_have_text(["kept", "kept"])
    page.goto(f"{site.url}/runs")
    page.get_by_role("link", name="Mine").click()
    expect(rows).to_have_count(2)
    rows.first.get_by_role("link", name="kept").click()
    assert page.url.endswith("/runs?tag=kept")
    expect(rows).to_have_count(2)


def test_a_batch_from_the_dialog_to_a_cell_of_its_matrix(visit: Callable[..., Visitor], site: Site) -> None:
    page = visit().page
    expect(page.locator("#theme")).to_be_visible()
    page.get_by_role("link", name="Run benchmark").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Problems per benchmark").fill("3")
    dialog.get_by_text("Machine, several models, repeats").click()
    dialog.get_by_role("group", name="Also run").get_by_label("demo-weak").check()
    expect(dialog.locator("#quote")).to_contain_text("2 runs")
    dialog.get_by_text("The same on the command line, and as YAML").click()
    expect(dialog.get_by_label("Command line")).to_contain_text("benchyard")
    assert_accessible(page)
    dialog.get_by_role("button", name="Start run").click()
    page.wait_for_url(re.compile(r"/batches/[0-9a-f-]{36}$"))
    cells = page.locator("a.heat")
    expect(cells).to_have_count(2)
    expect(cells.first).to_contain_text("66.7 %")
    cells.first.click()
    expect(page.locator("#runs tbody tr")).to_have_count(1)
