"""The whole story in a browser, against the real service with real containers and the demo provider, on a phone in the
dark: sign in, run, watch it finish across a crash of the orchestrator, open what failed, compare, schedule with the
builder, pause, run now, cancel.

Pictures of each step are kept in `build/screenshots`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browsing import RUN_PAGE, chromium, patient, start_from_dialog
from tests.faults.service import TOKEN, Service

pytestmark = [pytest.mark.browser, pytest.mark.engine, pytest.mark.slow]

PICTURES = Path(__file__).parents[2] / "build" / "screenshots"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    it = Service(tmp_path / "data", demo_latency_s=5)
    try:
        it.start()
        yield it
    finally:
        it.close()


class Visitor:
    """A person with a phone; notes every request that leaves the site and every error of a page's own script."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self._url = page, url
        self.outside: list[str] = []
        self.errors: list[str] = []
        page.on("request", lambda request: None if request.url.startswith(url) else self.outside.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda question: question.accept())

    def picture(self, name: str) -> None:
        width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert self.page.evaluate(width) <= 0, f"{name} is wider than the screen"
        self.page.screenshot(path=PICTURES / f"{name}.png", full_page=True)

    def status(self, wanted: str) -> None:
        expect(self.page.locator("#state .status")).to_have_text(wanted)


def test_the_whole_story(service: Service) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        context = patient(browser.new_context(color_scheme="dark", viewport={"width": 390, "height": 800}))
        visitor = Visitor(context.new_page(), service.url)
        sign_in(visitor, service)
        weak = a_run_across_a_crash(visitor, service)
        what_failed(visitor)
        strong = start_from_dialog(visitor.page, 12, "demo-strong")
        visitor.status("completed")
        a_comparison(visitor, service, weak, strong)
        a_schedule(visitor, service)
        assert (visitor.outside, visitor.errors) == ([], [])


def sign_in(visitor: Visitor, service: Service) -> None:
    visitor.page.goto(service.url)
    visitor.page.get_by_label("Token").fill(TOKEN)
    visitor.page.get_by_role("button", name="Sign in").click()
    expect(visitor.page.get_by_role("heading", name="Overview")).to_be_visible()
    visitor.picture("1-overview-empty")


def a_run_across_a_crash(visitor: Visitor, service: Service) -> str:
    """The orchestrator is killed in the middle; the page says so, recovers, and shows the end: never loaded again."""
    page = visitor.page
    run_id = start_from_dialog(page, 12, "demo-weak")
    page.evaluate("window.same = true")
    expect(page.locator(f'[data-count="{run_id}"]').first).to_have_text(re.compile(r"[2-9] of 12"))
    visitor.picture("2-run-live")
    service.kill()
    expect(page.get_by_text("Live updates lost.")).to_be_visible()
    visitor.picture("3-updates-lost")
    service.start()
    expect(page.get_by_text("Live updates lost.")).to_be_hidden()
    visitor.status("completed")
    expect(page.locator("#usage .plot")).to_have_count(2)
    assert page.evaluate("window.same") is True
    assert service.run(run_id)["progress"] == {"done": 12, "total": 12}
    visitor.picture("4-run-completed")
    return run_id


def what_failed(visitor: Visitor) -> None:
    page = visitor.page
    page.locator("#outcomes").get_by_role("link", name="wrong answer").click()
    page.locator("#item-list tbody th a").first.click()
    expect(page.get_by_role("heading", name="Extracted code")).to_be_visible()
    expect(page.locator(".tag.wrong_answer").first).to_be_visible()
    expect(page.get_by_role("table", name="Expected and got, line by line").first).to_be_visible()
    visitor.picture("5-failed-item")


def a_comparison(visitor: Visitor, service: Service, weak: str, strong: str) -> None:
    page = visitor.page
    page.goto(f"{service.url}/runs")
    for run_id in (weak, strong):
        page.locator(f'input[value="{run_id}"]').check()
    page.get_by_role("form", name="Selected runs").get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_role("heading", name="Items in both runs")).to_be_visible()
    visitor.picture("6-compare")
    page.get_by_role("link", name=re.compile("^Set the run of")).click()
    page.get_by_role("link", name=re.compile("^only B passes")).click()
    assert "kind=fixed" in page.url


def a_schedule(visitor: Visitor, service: Service) -> None:
    page = visitor.page
    page.goto(f"{service.url}/schedules")
    page.get_by_role("link", name="Add schedule").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Frequency").select_option("weekly")
    dialog.get_by_label("Weekday").select_option("TUE")
    dialog.get_by_label("Time", exact=True).fill("07:30")
    dialog.get_by_label("Problems per benchmark").fill("36")
    expect(dialog.locator("#quote")).to_contain_text("30 7 * * TUE")
    visitor.picture("7-schedule-builder")
    dialog.get_by_role("button", name="Save schedule").click()
    page.wait_for_url(re.compile(r"/schedules/\d+$"))
    page.get_by_role("button", name=re.compile("Pause")).click()
    expect(page.locator("#schedules .tag").first).to_have_text("paused")
    visitor.picture("8-schedule-paused")
    page.get_by_role("button", name=re.compile("Resume")).click()
    page.get_by_role("button", name=re.compile("Run the schedule of .* now")).click()
    page.wait_for_url(RUN_PAGE)
    visitor.status("running")
    page.get_by_role("button", name="Cancel").click()
    visitor.status("cancelled")
    expect(page.locator("#state .banner")).to_contain_text("Cancelled by")
    visitor.picture("9-cancelled")
