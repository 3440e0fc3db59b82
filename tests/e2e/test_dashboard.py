"""The dashboard in a real browser: sign in, start a run, watch it finish, open what failed, compare; and who may use it."""

from __future__ import annotations

import asyncio
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from orchestrator.engines.fake_engine import FakeEngine
from orchestrator.settings import Settings
from tests.e2e.browsing import chromium, start_from_dialog
from tests.served import TOKEN, served
from tests.unit.dashboard.hostile import PAYLOADS
from tests.unit.dashboard.story_runner import story_runner

pytestmark = pytest.mark.browser

STRUCTURE = ["region", "heading-order", "link-name", "label", "duplicate-id-aria", "scrollable-region-focusable"]


class Site:
    """The service on a thread of its own, with a runner that takes its time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._engine = FakeEngine(behaviour=story_runner(pause_s=0.12, text="\n".join(PAYLOADS)))
        self.url = ""

    def start(self) -> None:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        assert ready.wait(30)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(30)
        assert not self._thread.is_alive()

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        async with served(self._settings, engine=self._engine) as service:
            self.url = service.url
            ready.set()
            await self._end.wait()
            await self._engine.end_all()


@dataclass
class Visitor:
    """A signed-in browser window that notes what should not happen."""

    page: Page
    context: BrowserContext
    outside: list[str]
    complaints: list[str]

    def listen(self, line: ConsoleMessage) -> None:
        """A page that is not there is no fault of the browser's side."""
        if line.type == "error" and "status of 404" not in line.text:
            self.complaints.append(line.text)

    def check(self) -> None:
        assert self.outside == []
        assert self.complaints == []
        assert self.page.evaluate("window.hit") is None


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, data_template: Path) -> Iterator[Site]:
    data = tmp_path_factory.mktemp("site") / "data"
    shutil.copytree(data_template, data)
    settings = Settings(
        data=data,
        token=TOKEN,
        port=0,
        runner_port=0,
        reconcile_s=0.1,
        min_free_disk_bytes=0,
        min_free_disk_share=0.0,
    )
    it = Site(settings)
    it.start()
    yield it
    it.stop()


@pytest.fixture
def visit(browser: Browser, site: Site) -> Iterator[Callable[..., Visitor]]:
    opened: list[Visitor] = []

    def make(**options: object) -> Visitor:
        context = browser.new_context(**options)  # type: ignore[arg-type]
        page = context.new_page()
        visitor = Visitor(page, context, [], [])
        page.on("request", lambda request: None if request.url.startswith(site.url) else visitor.outside.append(request.url))
        page.on("pageerror", lambda error: visitor.complaints.append(str(error)))
        page.on("console", visitor.listen)
        page.goto(f"{site.url}/login?token={TOKEN}")
        opened.append(visitor)
        return visitor

    yield make
    for visitor in opened:
        visitor.check()
        visitor.context.close()


def assert_accessible(page: Page, *rules: str) -> None:
    """By all of axe's rules, or by those named."""
    options = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
    found = Axe().run(page, options=options).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found] == [], page.url


def test_the_whole_story(visit: Callable[..., Visitor], site: Site) -> None:
    page = visit().page
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.goto(f"{site.url}/runs")

    run_id = start_from_dialog(page, 12)

    # It is live: counters move and the end shows without a reload, while what was opened and chosen stays.
    page.evaluate("window.same = true")
    page.locator("#f-outcome").focus()
    expect(page.locator(f'[data-count="{run_id}"]').first).to_have_text(re.compile(r"[3-9] of 12"), timeout=10_000)
    expect(page.locator("#state .status")).to_have_text("completed", timeout=15_000)
    expect(page.locator("#score .big")).to_have_text("66.7 %")
    assert page.evaluate("window.same") is True
    assert page.evaluate("document.activeElement.id") == "f-outcome"
    expect(page.locator("#item-list tbody tr")).to_have_count(12)

    page.get_by_role("link", name="wrong answer").first.click()
    expect(page.locator("#item-list tbody tr")).to_have_count(4)
    page.locator("#item-list tbody th a").first.click()
    expect(page.get_by_role("heading", name="Code taken from the answer")).to_be_visible()
    expect(page.locator(".diff .missing").first).to_contain_text("b")
    assert page.locator(".t-keyword").first.inner_text() == "def"
    page.get_by_role("link", name=re.compile("Next")).click()
    assert "outcome=wrong_answer" in page.url

    other = start_from_dialog(page, 12)
    expect(page.locator("#state .status")).to_have_text("completed", timeout=15_000)
    page.goto(f"{site.url}/compare?run={run_id}&run={other}")
    expect(page.get_by_role("heading", name="Both runs pass and fail the same problems.")).to_be_visible()


def test_a_schedule_from_the_builder_to_a_run(visit: Callable[..., Visitor], site: Site) -> None:
    page = visit().page
    page.goto(f"{site.url}/schedules")
    page.get_by_role("link", name="Add a schedule").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("How often").select_option("weekly")
    dialog.get_by_label("Weekday").select_option("TUE")
    dialog.get_by_label("At", exact=True).fill("07:30")
    dialog.get_by_label("Time zone").fill("Europe/Berlin")
    dialog.get_by_label("Problems of each benchmark").fill("3")
    expect(dialog.locator("#quote")).to_contain_text("30 7 * * TUE")
    expect(dialog.locator("#quote")).to_contain_text("a drop of")
    assert_accessible(page)
    dialog.get_by_role("button", name="Save the schedule").click()
    page.wait_for_url(re.compile(r"/schedules/\d+$"))
    expect(page.locator("#next tbody tr")).to_have_count(5)

    page.get_by_role("button", name=re.compile("Pause")).click()
    expect(page.locator("#schedules .tag").first).to_have_text("paused")
    page.get_by_role("button", name=re.compile("Resume")).click()
    page.get_by_role("button", name=re.compile("Run the schedule of .* now")).click()
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}$"))
    expect(page.locator("#state .status")).to_have_text("completed", timeout=15_000)
    page.goto(f"{site.url}/schedules")
    expect(page.locator("#schedules tbody tr")).to_contain_text("66.7 %")


def test_cancel(visit: Callable[..., Visitor]) -> None:
    page = visit().page
    start_from_dialog(page, 36)
    page.on("dialog", lambda question: question.accept())

    page.get_by_role("button", name="Cancel").click()

    expect(page.locator("#state .status")).to_have_text("cancelled", timeout=15_000)
    expect(page.locator("#state .banner")).to_contain_text("Somebody cancelled the run.")
    expect(page.get_by_role("button", name="Retry")).to_be_visible()


def test_it_works_without_script(visit: Callable[..., Visitor], site: Site) -> None:
    page = visit(java_script_enabled=False).page
    page.get_by_role("link", name="Run benchmark").click()
    page.get_by_label("Problems of each benchmark").fill("2")
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}$"))
    page.goto(f"{site.url}/runs?status=completed")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()


@pytest.mark.parametrize("look", ["light", "dark"])
def test_every_page_is_accessible_and_fits_a_phone(visit: Callable[..., Visitor], site: Site, look: str) -> None:
    page = visit(color_scheme=look, viewport={"width": 390, "height": 800}).page
    run_id = start_from_dialog(page, 3)
    expect(page.locator("#state .status")).to_have_text("completed", timeout=15_000)
    run = f"/runs/{run_id}"
    other = start_from_dialog(page, 3)
    expect(page.locator("#state .status")).to_have_text("completed", timeout=15_000)
    paths = [run, f"{run}/items/2", "/", "/models"]
    if look == "light":
        paths += [f"/compare?run={run_id}&run={other}", "/runs", "/leaderboard", "/datasets", "/fleet", "/schedules"]
        paths += ["/docs", "/login", "/nothing"]
    for path in paths:
        answer = page.goto(site.url + path)
        assert answer is not None
        assert answer.status == (404 if path == "/nothing" else 200)
        # What differs in the dark are the colours; the reference is one pattern many times over.
        assert_accessible(page, *(["color-contrast"] if look == "dark" else STRUCTURE if path == "/docs" else []))
        width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert width <= 0, f"{path} is wider than the screen by {width}"


def test_lost_updates_are_told_and_come_back(visit: Callable[..., Visitor], site: Site) -> None:
    visitor = visit()
    visitor.context.route("**/api/events*", lambda route: route.abort())
    visitor.page.goto(f"{site.url}/runs")
    expect(visitor.page.get_by_text("Live updates are lost.")).to_be_visible(timeout=10_000)

    visitor.context.unroute("**/api/events*")

    expect(visitor.page.get_by_text("Live updates are lost.")).to_be_hidden(timeout=10_000)
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
