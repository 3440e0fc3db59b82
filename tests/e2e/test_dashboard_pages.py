"""Every page of the dashboard in a real browser: accessible in light and dark on a phone and a wide screen; signing in,
tokens, webhooks and datasets as people use them."""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect
from sqlalchemy import create_engine
from sqlmodel import Session

from orchestrator.alerts.sending.messages import MessageFormat, body_for
from orchestrator.alerts.tables import Alert
from orchestrator.datasets.catalogue import SAMPLE_FILE
from tests.e2e.browsing import (
    Site,
    Visitor,
    assert_accessible,
    finished_run,
    keep_picture,
    look_at,
    open_site,
    visiting,
)
from tests.served import TOKEN
from tests.service.dashboard.stepwise_runner import story_runner

pytestmark = pytest.mark.browser
PROBLEM = "by_001_lantern_row"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, data_template: Path) -> Iterator[Site]:
    with open_site(
        tmp_path_factory.mktemp("pages"), data_template, story_runner(), webhook_allow="127.0.0.1", dataset_allow="127.0.0.1"
    ) as it:
        yield it


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes what is posted to it, and serves the sample's problems."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(204)
        self.end_headers()

    def do_GET(self) -> None:
        body = SAMPLE_FILE.read_bytes()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_signing_in_keeps_the_page_and_says_where_the_token_is(browser: Browser, site: Site) -> None:
    with visiting(browser, site.url) as visitor:
        page = visitor.page
        page.goto(f"{site.url}/runs?status=failed&benchmark=sample")
        assert_accessible(page)
        page.get_by_label("Token").fill("not it")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert").first).to_contain_text("in the file token of the data directory")
        assert_accessible(page)
        page.get_by_label("Token").fill(TOKEN)
        page.keyboard.press("Enter")
        page.wait_for_url(f"{site.url}/runs?status=failed&benchmark=sample")
        page.get_by_role("button", name="Sign out").click()
        page.goto(f"{site.url}/settings")
        assert page.url == f"{site.url}/login?next=%2Fsettings"


def test_tokens_and_webhooks(visit: Callable[..., Visitor], site: Site, api: httpx.Client, receiver: str) -> None:
    visitor = visit()
    page = visitor.page
    page.on("dialog", lambda question: question.accept())
    page.get_by_role("link", name="Settings").click()
    page.get_by_label("Name").fill("nightly")
    page.get_by_label("Scope").select_option("run")
    page.get_by_role("button", name="Create token").click()
    token = page.locator("#secret").inner_text()
    assert_accessible(page)
    bearer = {"authorization": f"Bearer {token}"}
    assert httpx.get(f"{site.url}/api/models", headers=bearer).status_code == 200
    page.goto(f"{site.url}/settings")
    assert token not in page.content()

    page.get_by_label("Address").fill(f"{receiver}/hook")
    page.get_by_role("button", name="Add webhook").click()
    expect(page.locator("#secret")).to_contain_text("whsec_")
    page.get_by_role("button", name=re.compile("Send a test message")).click()
    expect(page.get_by_role("status").first).to_contain_text("HTTP 204")
    before = page.locator("#secret").count()
    page.get_by_role("button", name=re.compile("Change the secret")).click()
    expect(page.locator("#secret")).to_contain_text("whsec_")
    assert before == 0
    page.goto(f"{site.url}/settings")
    page.get_by_role("link", name=f"{receiver}/hook").click()
    expect(page.get_by_text("No messages yet.")).to_be_visible()
    assert_accessible(page)
    page.go_back()
    page.get_by_role("button", name=re.compile("Remove http")).click()
    expect(page.get_by_text("No webhooks yet.")).to_be_visible()
    page.get_by_label("Address").fill("http://169.254.169.254/latest")
    page.get_by_role("button", name="Add webhook").click()
    expect(page.get_by_role("alert").first).to_contain_text("169.254.169.254")

    page.get_by_role("button", name="Revoke the token nightly").click()
    expect(page.get_by_text("No tokens yet.")).to_be_visible()
    assert httpx.get(f"{site.url}/api/models", headers=bearer).status_code == 401


def test_datasets_from_an_address_and_a_file(
    visit: Callable[..., Visitor], site: Site, api: httpx.Client, receiver: str, tmp_path: Path
) -> None:
    page = visit().page
    page.on("dialog", lambda question: question.accept())
    page.goto(f"{site.url}/datasets")
    page.get_by_text("From a URL", exact=True).click()
    form = page.locator("form:visible", has=page.locator("#a-source"))
    form.get_by_label("URL").fill(f"{receiver}/problems.jsonl")
    form.get_by_label("Name").fill("mine")
    form.get_by_role("button", name="Download and add").click()
    expect(page.locator('tr[data-key="j-mine"]')).to_contain_text("36 problems")
    expect(page.get_by_role("heading", name="mine")).to_be_visible()

    # A file: what is wrong with it is said beside it, or where it is being added.
    file = tmp_path / "more problems.jsonl"
    file.write_bytes(SAMPLE_FILE.read_bytes() * 4)
    page.get_by_text("From a file", exact=True).click()
    page.locator("#f-file").set_input_files(file)
    page.locator("#f-name").evaluate("field => field.removeAttribute('pattern')")
    page.locator("#f-name").fill("sample")
    page.get_by_role("button", name="Upload and add").click()
    expect(page.locator("form[data-upload] [role=alert]")).to_contain_text("choose another name")
    page.locator("#f-name").fill("more")
    page.get_by_role("button", name="Upload and add").click()
    expect(page.locator('tr[data-key="j-more"]')).to_be_visible()
    expect(page.locator('tr[data-key="j-more"]')).to_contain_text(re.compile("problems|failed"))
    assert_accessible(page)

    page.get_by_role("button", name="Verify mine").click()
    expect(page.get_by_role("status").first).to_contain_text("mine is whole: all 36 problems")
    page.get_by_role("button", name="Remove mine").click()
    expect(page.get_by_role("button", name="Verify mine")).to_have_count(0)
    assert api.get("/api/datasets/mine").json()["dataset"] is None

    damaged = site.data / "packs" / "torn.pack"
    damaged.write_bytes(b"not a pack")
    page.goto(f"{site.url}/datasets")
    expect(page.get_by_text("it is not a pack, or was cut short")).to_be_visible()
    page.get_by_role("button", name="Remove torn").click()
    expect(page.get_by_text("it is not a pack")).to_have_count(0)
    assert not damaged.exists()


def test_two_clicks_lead_from_the_slack_message_to_what_changed(
    visit: Callable[..., Visitor], site: Site, api: httpx.Client
) -> None:
    """The first on the link of the message, the second from a flipped problem to both answers."""
    good, bad = finished_run(api), finished_run(api)
    items = api.get(f"/api/container-runs/{bad}/items").json()["items"]
    flips = [{"benchmark": "sample", "problem_id": item["problem_id"], "before": 1.0, "now": 0.0} for item in items]
    at = datetime.now(UTC)
    alert = Alert(uid="drop", model_id=1, kind="drift.worse", run_id=bad, title="worse", data={"flipped": flips}, at=at)
    engine = create_engine(f"sqlite:///{site.data / 'benchyard.db'}")
    with Session(engine, expire_on_commit=False) as session:
        session.add(alert)
        session.commit()
    engine.dispose()
    message = json.loads(body_for(MessageFormat.SLACK, alert, site.url))
    page = visit().page
    page.goto(message["blocks"][-1]["elements"][0]["url"])
    rows = page.get_by_role("table", name="Changed problems").locator("tbody tr")
    expect(rows).to_have_count(len(items))
    expect(rows.first).to_contain_text("broken")
    keep_picture(page, "alert-1440")
    rows.first.get_by_role("rowheader").get_by_role("link").click()
    expect(page.get_by_role("heading", name="Changed verdicts")).to_be_visible()
    assert good
    cell = page.locator(f".strip a[href*='{bad}']")
    expect(cell).to_have_count(1)


def test_figures_say_what_is_under_the_pointer_and_can_be_saved(
    visit: Callable[..., Visitor], site: Site, api: httpx.Client
) -> None:
    finished_run(api)
    page = visit().page
    page.goto(f"{site.url}/models/demo-strong")
    figure = page.locator("#fig-outcomes")
    figure.locator("rect[data-tip]").first.hover()
    expect(page.locator(".figure-tip")).to_contain_text("of 3")
    with page.expect_download() as table:
        figure.get_by_role("button", name="CSV").click()
    assert table.value.path().read_text().startswith("Run,")
    with page.expect_download() as picture:
        figure.get_by_role("button", name="PNG").click()
    assert picture.value.path().read_bytes().startswith(b"\x89PNG")


def test_every_page_and_dialog_is_accessible_and_fits(visit: Callable[..., Visitor], site: Site, api: httpx.Client) -> None:
    run_id, other = finished_run(api), finished_run(api)
    api.post("/api/schedules", json={"model_id": "demo-weak", "cron_expression": "15 6 * * *", "sample_size": 3})
    api.post("/api/tokens", json={"name": "a name that is " + "long" * 15})
    hook = api.post("/api/alerts/webhooks", json={"url": f"http://127.0.0.1:9/{'long' * 30}"}).json()["id"]
    schedule = api.get("/api/schedules").json()["items"][0]["model_id"]
    page = visit().page
    run = f"/runs/{run_id}"
    pages = {"overview": "/", "runs": "/runs", "run": run, "item": f"{run}/items/2", "leaderboard": "/leaderboard"}
    pages |= {"compare": f"/compare?run={run_id}&run={other}", "schedules": "/schedules", "models": "/models"}
    pages |= {"schedule": f"/schedules/{schedule}", "datasets": "/datasets", "fleet": "/fleet", "settings": "/settings"}
    pages |= {"webhook": f"/settings/webhooks/{hook}", "login": "/login", "docs": "/docs", "nothing": "/nothing"}
    api.post("/api/keys", json={"provider": "openai", "key": "sk-0123456789", "holder": "workspace", "name": "long" * 20})
    api.put("/api/limits/everyone", json={"runs_at_once": 50, "spend_per_day_usd": 1e6})
    pages |= {
        "model": "/models/demo-strong",
        "dataset": "/datasets/sample",
        "problem": f"/problems?benchmark=sample&id={PROBLEM}",
    }
    pages |= {"keys": "/keys", "limits": "/limits", "audit": "/audit", "alerts": "/alerts"}
    for name, path in pages.items():
        answer = page.goto(site.url + path)
        assert answer is not None
        assert answer.status == (404 if name == "nothing" else 200)
        look_at(page, name)
    page.goto(site.url)
    page.set_viewport_size({"width": 390, "height": 800})
    expect(page.get_by_role("link", name="Audit")).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    expect(page.get_by_role("link", name="Audit")).to_be_visible()
    keep_picture(page, "drawer-390")
    assert_accessible(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Audit")).to_be_hidden()
    page.set_viewport_size({"width": 1440, "height": 900})
    page.keyboard.press("Control+k")
    page.keyboard.type("leader")
    assert_accessible(page)
    keep_picture(page, "palette")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site.url}/leaderboard")
    expect(page.locator("#theme")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Search and commands")
    assert_accessible(page)
    page.keyboard.press("Escape")
    for name, path, link in (("new-run", "/runs", "Run benchmark"), ("new-schedule", "/schedules", "Add schedule")):
        page.goto(site.url + path)
        page.get_by_role("link", name=link).first.click()
        expect(page.get_by_role("dialog")).to_be_visible()
        look_at(page, name)
