"""What tests in a browser share: the browser, and the way a person starts a run."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, expect, sync_playwright

QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]
RUN_PAGE = re.compile(r"/runs/[0-9a-f-]{36}$")


@contextmanager
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert path, "no Chromium: run scripts/browser"
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield found
        found.close()


def start_from_dialog(page: Page, size: int, model: str | None = None) -> str:
    """Press "Run benchmark", fill in the dialog, start; answers with the run's id."""
    page.get_by_role("link", name="Run benchmark").click()
    dialog = page.get_by_role("dialog")
    if model is not None:
        dialog.get_by_label("Model").select_option(model)
    dialog.get_by_label("Problems of each benchmark").fill(str(size))
    expect(dialog.locator("#quote")).to_contain_text(f"{size} items")
    dialog.get_by_role("button", name="Start the run").click()
    page.wait_for_url(RUN_PAGE)
    return page.url.rpartition("/")[2]
