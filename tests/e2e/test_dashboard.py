"""The dashboard in a real browser: sign in, start a run, watch it finish, open what failed, compare; and who may use it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.browsing import Site, Visitor, assert_accessible, open_site, start_from_dialog, until
from tests.service.dashboard.hostile_texts import EVERYTHING
from tests.service.dashboard.stepwise_runner import Hold, story_runner

pytestmark = pytest.mark.browser
HOLD = Hold()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, data_template: Path) -> Iterator[Site]:
    behaviour = story_runner(pause_s=0.02, text=EVERYTHING, hold=HOLD)
    with open_site(tmp_path_factory.mktemp("site"), data_template, behaviour) as it:
        yield it


def test_the_whole_story(visit: Callable[..., Visitor], site: Site) -> None:
    page = visit().page
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.goto(f"{site.url}/runs")

    HOLD.at = 5
    run_id = start_from_dialog(page, 12)

    # It is live: counters move and the end shows without a reload, while what was opened and chosen stays.
    page.evaluate("window.same = true")
    page.locator("#f-outcome").focus()
    expect(page.locator(f'[data-count="{run_id}"]').first).to_have_text("5 of 12")
    HOLD.at = None
    expect(page.locator("#state .status")).to_have_text("completed")
    expect(page.locator("#score .big")).to_have_text("66.7 %")
    assert page.evaluate("window.same") is True
    assert page.evaluate("document.activeElement.id") == "f-outcome"
    expect(page.locator("#item-list tbody tr")).to_have_count(12)

    page.get_by_role("link", name="wrong answer").first.click()
    expect(page.locator("#item-list tbody tr")).to_have_count(4)
    page.locator("#item-list tbody th a").first.click()
    expect(page.get_by_role("heading", name="Extracted code")).to_be_visible()
    expect(page.locator(".verdict-diff .pair-changed .line").first).to_contain_text("b")
    assert page.locator(".t-keyword").first.inner_text() == "def"
    page.get_by_role("link", name=re.compile("Next")).click()
    assert "outcome=wrong_answer" in page.url

    other = start_from_dialog(page, 12)
    expect(page.locator("#state .status")).to_have_text("completed")
    page.goto(f"{site.url}/compare?run={run_id}&run={other}")
    expect(page.get_by_role("heading", name="12 shared problems: A passes 8, B 8; the same ones.")).to_be_visible()


def test_a_schedule_from_the_builder_to_a_run(visit: Callable[..., Visitor], site: Site) -> None:
    page = visit(timezone_id="Asia/Tokyo", locale="en-GB").page
    page.goto(f"{site.url}/schedules")
    page.get_by_role("link", name="Add schedule").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Use mine: Asia/Tokyo").click()
    expect(dialog.locator("#quote")).to_contain_text("At 06:00 every day, Asia/Tokyo time")
    dialog.get_by_label("Frequency").select_option("fields")
    dialog.get_by_label("Day of the week").fill("MON-WED")
    expect(dialog.locator("#quote code")).to_have_text("0 6 * * MON-WED")
    dialog.get_by_label("Frequency").select_option("free")
    expect(dialog.get_by_label("Cron expression")).to_have_value("0 6 * * MON-WED")
    dialog.get_by_label("Cron expression").fill("61 * * * *")
    expect(dialog.locator("#quote .bad")).to_contain_text("minute")
    dialog.get_by_label("Frequency").select_option("weekly")
    dialog.get_by_label("Weekday").select_option("TUE")
    dialog.get_by_label("Time", exact=True).fill("07:30")
    dialog.get_by_label("Time zone").fill("Europe/Berlin")
    dialog.get_by_label("Problems per benchmark").fill("3")
    expect(dialog.locator("#quote")).to_contain_text("30 7 * * TUE")
    expect(dialog.locator("#quote tbody tr")).to_have_count(5)
    expect(dialog.locator("#quote tbody tr").first).to_contain_text("2026-11-17 07:30")
    expect(dialog.locator("#quote tbody tr").first).to_contain_text("17 Nov 2026, 15:30:00")
    expect(dialog.locator("#quote")).to_contain_text("a drop of")
    assert_accessible(page)
    dialog.get_by_role("button", name="Save schedule").click()
    page.wait_for_url(re.compile(r"/schedules/\d+$"))
    expect(page.locator("#next tbody tr")).to_have_count(5)

    page.get_by_role("button", name=re.compile("Pause")).click()
    expect(page.locator("#schedules .tag").first).to_have_text("paused")
    page.get_by_role("button", name=re.compile("Resume")).click()
    page.get_by_role("button", name=re.compile("Run the schedule of .* now")).click()
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}$"))
    expect(page.locator("#state .status")).to_have_text("completed")
    page.goto(f"{site.url}/schedules")
    expect(page.locator("#schedules tbody tr")).to_contain_text("66.7 %")


def test_cancel(visit: Callable[..., Visitor], api: httpx.Client) -> None:
    HOLD.at = 3
    page = visit().page
    run_id = start_from_dialog(page, 36)
    page.on("dialog", lambda question: question.accept())

    page.get_by_role("button", name="Cancel").click()
    until(lambda: api.get(f"/api/container-runs/{run_id}").json()["desired"] == "cancel")
    HOLD.at = None

    expect(page.locator("#state .status")).to_have_text("cancelled")
    expect(page.locator("#state .banner")).to_contain_text("Cancelled by")
    expect(page.get_by_role("button", name="Retry")).to_be_visible()


def test_it_works_without_script(visit: Callable[..., Visitor], site: Site) -> None:
    page = visit(java_script_enabled=False).page
    page.get_by_role("link", name="Run benchmark").click()
    page.get_by_label("Problems per benchmark").fill("2")
    page.get_by_role("button", name="Start run").click()
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}$"))
    page.goto(f"{site.url}/runs?status=completed")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()


def test_lost_updates_are_told_and_come_back(visit: Callable[..., Visitor], site: Site) -> None:
    visitor = visit()
    visitor.context.route("**/api/events*", lambda route: route.abort())
    visitor.page.goto(f"{site.url}/runs")
    expect(visitor.page.get_by_text("Live updates lost.")).to_be_visible()

    visitor.context.unroute("**/api/events*")

    expect(visitor.page.get_by_text("Live updates lost.")).to_be_hidden()
    visitor.complaints.clear()  # the browser notes each try in its console


def test_the_dialog_is_accessible_and_closes_by_keyboard(visit: Callable[..., Visitor]) -> None:
    page = visit().page
    page.get_by_role("link", name="Run benchmark").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert_accessible(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.evaluate("document.activeElement.textContent") == "Run benchmark"
