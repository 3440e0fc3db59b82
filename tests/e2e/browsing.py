"""What tests in a browser share: the service on a thread, a window that notes what should not happen, pictures."""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.settings import Settings
from tests.e2e import without_netlink
from tests.manual_clock import ManualClock
from tests.served import TOKEN, served

PATIENCE_S = 300
"""For whatever a page or the service shall show: what works ends the wait at once, and a busy machine has time."""
ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "build" / "screenshots"
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # nothing else could be reached, whoever asked for it
]


OPEN_ALL = "document.querySelectorAll('details').forEach(each => { each.removeAttribute('name'); each.open = true; })"
SHORTEN = "document.querySelectorAll('.endpoint').forEach((each, number) => number > 20 && each.remove())"
"""The reference of the API is one pattern many times over: the whole of it is looked at once."""
LOOKS: list[tuple[Literal["light", "dark"], int]] = [("light", 390), ("dark", 390), ("dark", 1600), ("light", 1600)]
PICTURED = [("dark", 390), ("light", 1600)]
DEPENDS_ON_LOOKS = ["color-contrast", "scrollable-region-focusable", "target-size", "link-in-text-block"]
RUN_PAGE = re.compile(r"/runs/[0-9a-f-]{36}$")


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser that engines do not disturb."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert path, "no Chromium: run scripts/browser"
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        program = _without_netlink(Path(folder) / "chromium", path) if without_netlink.possible() else path
        browser = playwright.chromium.launch(executable_path=program, args=QUIET, timeout=PATIENCE_S * 1000)
        expect.set_options(timeout=PATIENCE_S * 1000)
        yield browser
        browser.close()


def _without_netlink(script: Path, path: str) -> Path:
    """Playwright starts a file and adds arguments to it: this one starts the browser."""
    command = shlex.join([sys.executable, "-m", without_netlink.__name__, path])
    script.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {command} "$@"\n')
    script.chmod(0o755)
    return script


def patient(context: BrowserContext) -> BrowserContext:
    context.set_default_timeout(PATIENCE_S * 1000)
    return context


class Site:
    """The service on a thread of its own, with a runner that takes its time."""

    def __init__(self, settings: Settings, behaviour: Callable[..., Any], clock: ManualClock | None = None) -> None:
        self._settings = settings
        self.engine = FakeEngine(behaviour=behaviour)
        self.data = settings.data
        self.url = ""
        self.clock = clock or ManualClock()

    def start(self) -> None:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        assert ready.wait(PATIENCE_S)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        async with served(self._settings, engine=self.engine, clock=self.clock) as service:
            self.url = service.url
            ready.set()
            await self._end.wait()
            await self.engine.end_all()


@contextmanager
def open_site(
    directory: Path,
    data_template: Path,
    behaviour: Callable[..., Any],
    *,
    clock: ManualClock | None = None,
    **changed: Any,
) -> Iterator[Site]:
    data = directory / "data"
    shutil.copytree(data_template, data)
    values = {"data": data, "token": TOKEN, "port": 0, "runner_port": 0, "reconcile_s": 0.1, "request_timeout_s": 600}
    site = Site(Settings(**values, min_free_disk_bytes=0, min_free_disk_share=0.0, **changed), behaviour, clock)
    site.start()
    yield site
    site.stop()


@dataclass
class Visitor:
    """A browser window that notes what should not happen: requests elsewhere, errors, scripts of others."""

    page: Page
    context: BrowserContext
    outside: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def listen(self, line: ConsoleMessage) -> None:
        """A page that is not there and a refused form are no faults of the browser's side."""
        if line.type == "error" and not re.search(r"status of (401|403|404|409|422)", line.text):
            self.complaints.append(line.text)

    def check(self) -> None:
        assert self.outside == []
        assert self.complaints == [], self.complaints
        assert self.page.evaluate("window.hit") is None


@contextmanager
def visiting(browser: Browser, url: str, **options: Any) -> Iterator[Visitor]:
    """A window on the site at `url`, checked when it closes; not signed in."""
    context = patient(browser.new_context(**options))
    page = context.new_page()
    visitor = Visitor(page, context)
    page.on("request", lambda request: request.url.startswith(url) or visitor.outside.append(request.url))
    page.on("pageerror", lambda error: visitor.complaints.append(str(error)))
    page.on("console", visitor.listen)
    yield visitor
    visitor.check()
    context.close()


def start_from_dialog(page: Page, size: int, model: str | None = None) -> str:
    """Press "Run benchmark", fill in the dialog, start; answers with the run's id."""
    expect(page.locator("#theme")).to_be_visible()  # the page's script is there
    page.get_by_role("link", name="Run benchmark").click()
    dialog = page.get_by_role("dialog")
    if model is not None:
        dialog.get_by_label("Model").select_option(model)
    dialog.get_by_label("Problems per benchmark").fill(str(size))
    expect(dialog.locator("#quote")).to_contain_text(f"{size} items")
    dialog.get_by_role("button", name="Start run").click()
    page.wait_for_url(RUN_PAGE)
    return page.url.rpartition("/")[2]


def assert_accessible(page: Page, *rules: str) -> None:
    """By all of axe's rules, or by those named."""
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(Axe().axe_script)
    found = page.evaluate(
        """options => axe.run(options).then(({ violations }) =>
             violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 200)}`))""",
        options,
    )
    assert found == [], f"{page.url}: {found}"


def assert_fits(page: Page) -> None:
    width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert width <= 0, f"{page.url} is wider than the screen by {width}"


def keep_picture(page: Page, name: str) -> None:
    """For whoever looks at what a test saw."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


def look_at(page: Page, name: str) -> None:
    """By all of axe's rules on a phone in the light, then by those that colours and widths can break."""
    page.evaluate(OPEN_ALL)
    for look, width in LOOKS:
        page.emulate_media(color_scheme=look)
        page.set_viewport_size({"width": width, "height": 800})
        assert_accessible(page, *([] if (look, width) == LOOKS[0] else DEPENDS_ON_LOOKS))
        assert_fits(page)
        page.evaluate(SHORTEN)
        if (look, width) in PICTURED:
            keep_picture(page, f"{name}-{look}-{width}")


def finished_run(api: httpx.Client, **changed: Any) -> str:
    made = api.post("/api/container-runs", json={"model_id": "demo-strong", "sample_size": 3, **changed})
    assert made.status_code == 202, made.text
    run_id: str = made.json()["run_id"]
    until(lambda: api.get(f"/api/container-runs/{run_id}").json()["status"] in ("completed", "failed"))
    return run_id


def until(reached: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
    end = time.monotonic() + timeout_s
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.05)
