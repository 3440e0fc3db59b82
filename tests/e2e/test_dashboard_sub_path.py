"""The whole dashboard under a path of a real reverse proxy that strips the path and changes the Host."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from orchestrator.datasets.catalogue import SAMPLE_FILE
from tests.e2e.browsing import open_site, start_from_dialog, until, visiting
from tests.served import TOKEN
from tests.service.dashboard.stepwise_runner import story_runner

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
FILES = re.compile(r"/(export|items\.csv|answer|prompt|code|log|artefacts|openapi\.json)")
"""Links that give a file and not a page."""


def test_the_whole_dashboard_under_a_sub_path(browser: Browser, tmp_path: Path, data_template: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    outside = f"http://127.0.0.1:{port}/benchyard"
    behaviour = story_runner(pause_s=0.15)
    with open_site(tmp_path, data_template, behaviour, public_url=outside) as site, ExitStack() as stack:
        command = [sys.executable, "-m", "tests.e2e.sub_path_proxy", str(port), site.url, "/benchyard"]
        process = stack.enter_context(subprocess.Popen(command, cwd=ROOT))
        stack.callback(process.terminate)
        until(lambda: _answers(f"{outside}/healthz"))
        visitor = stack.enter_context(visiting(browser, f"{outside}/"))
        page = visitor.page
        page.goto(f"{outside}/runs?status=failed")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{outside}/runs?status=failed")

        run_id = start_from_dialog(page, 6)
        page.evaluate("window.same = true")
        expect(page.locator("#state .status")).to_have_text("completed")  # live, through the proxy
        assert page.evaluate("window.same") is True
        page.goto(f"{outside}/schedules")
        page.get_by_role("link", name="Add schedule").first.click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Problems per benchmark").fill("3")
        dialog.get_by_role("button", name="Save schedule").click()
        page.wait_for_url(re.compile(rf"^{outside}/schedules/\d+$"))
        file = tmp_path / "mine.jsonl"
        file.write_bytes(SAMPLE_FILE.read_bytes())
        page.goto(f"{outside}/datasets")
        page.get_by_text("From a file", exact=True).click()
        page.locator("#f-file").set_input_files(file)
        page.locator("#f-name").fill("mine")
        page.get_by_role("button", name="Upload and add").click()
        expect(page.get_by_role("heading", name="mine")).to_be_visible()

        seen, waiting = set(), [outside + "/", f"{outside}/runs/{run_id}/items/0"]
        while waiting:
            address = waiting.pop()
            seen.add(address)
            answer = page.goto(address)
            assert answer is not None
            assert answer.status == 200, address
            places: list[str] = page.evaluate(
                """() => [...document.querySelectorAll("a[href], form[action], img[src], link[href], script[src]")]
                    .filter((each) => !each.hasAttribute("download"))
                    .map((each) => [each.localName, each.getAttribute("href") ?? each.getAttribute("action") ?? each.src])
                    .map(([tag, place]) => `${tag} ${new URL(place, location.href)}`)"""
            )
            assert [place for place in places if not place.split()[1].startswith(outside)] == [], address
            links = {place.split()[1].split("#")[0] for place in places if place.startswith("a ")}
            kinds = {re.sub(r"[0-9a-f-]{36}|\d+|\?.*", "*", each) for each in seen | set(waiting)}
            for link in sorted(links - seen):
                kind = re.sub(r"[0-9a-f-]{36}|\d+|\?.*", "*", link)
                if kind not in kinds and not FILES.search(link):
                    kinds.add(kind)
                    waiting.append(link)
        assert len(seen) > 12, seen
        page.goto(f"{outside}/fleet")
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url(f"{outside}/login")


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.HTTPError:
        return False
