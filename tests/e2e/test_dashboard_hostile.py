"""What models, providers and people write, in every field that they can fill: on no page of the dashboard does it become
anything but text. In a real browser, with a hundred ways to try."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Page

from orchestrator.datasets.catalogue import SAMPLE_FILE
from orchestrator.engines.fake.container import FakeContainer
from tests.e2e.browsing import Site, Visitor, finished_run, open_site, until
from tests.served import RunnerClient
from tests.service.dashboard.hostile_texts import EVERYTHING, PAYLOADS
from tests.service.dashboard.stepwise_runner import story_runner

pytestmark = pytest.mark.browser

BROKEN = b"\xff\xfe\xc0\xaf\xed\xa0\x80" + EVERYTHING.encode() + b"\xf0\x9f\n"


async def hostile_runner(container: FakeContainer) -> int:
    """Writes what it can wherever it can."""
    container.write(BROKEN)
    return await story_runner(text=EVERYTHING)(container)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, data_template: Path) -> Iterator[Site]:
    with open_site(tmp_path_factory.mktemp("hostile"), data_template, hostile_runner, webhook_allow="127.0.0.1") as it:
        yield it


FOREIGN = r"""(root) => [...root.querySelectorAll("*")].flatMap((element) => {
  const tag = element.localName;
  const leads = ["href", "src", "action", "formaction", "data", "xlink:href"];
  const elsewhere = (value) => !new URL(value, location.href).href.startsWith(`${location.origin}/`);
  const seen = [...element.attributes].filter(({ name, value }) =>
    name.startsWith("on") || name === "style" || name === "srcdoc" || (leads.includes(name) && elsewhere(value)));
  const known = /\/static\/v-[0-9a-f]{16}\/(theme|app|vendor\/(katex|uplot)\/[\w.]+)\.js$/;
  const ours = tag === "script" && known.test(element.src);
  const never = ["script", "iframe", "object", "embed", "base", "style", "math", "portal", "marquee", "video", "audio"];
  return [...seen.map(({ name, value }) => `${tag} ${name}=${value}`), ...(never.includes(tag) && !ours ? [tag] : [])];
})"""
"""Elements and attributes that no page of ours has."""


def inserted(page: Page, html: str | None = None) -> list[str]:
    """What a text has become that should have stayed text: on the page, or in an answer."""
    if html is None:
        found: list[str] = page.evaluate(f"({FOREIGN})(document)")
    else:
        found = page.evaluate(f"(text) => ({FOREIGN})(new DOMParser().parseFromString(text, 'text/html'))", html)
    return found


STORABLE = [each for each in PAYLOADS if "\x00" not in each]
SHORT = ["".join(STORABLE[n : n + 3])[:199] for n in range(0, len(STORABLE), 3)]
"""For fields that hold a name."""


async def failing_runner(container: FakeContainer) -> int:
    runner = RunnerClient(container.boot_line)
    try:
        await runner.claim()
        await runner.send(runner.next("failed", reason="provider_error", message=EVERYTHING))
        return 1
    finally:
        await runner.close()


def fill_everything(site: Site, api: httpx.Client) -> list[str]:
    """The texts into every field there is; the pages that show them."""
    for number, text in enumerate(SHORT):
        model = {"slug": f"evil-{number}", "provider": "demo", "name": text, "display_name": text}
        assert api.post("/api/models", json=model).status_code == 201
        assert api.post("/api/tokens", json={"name": f"{number}{text}"[:100]}).status_code == 201
        hook = {"url": f"http://127.0.0.1:9/{number}?{text}"}
        assert api.post("/api/alerts/webhooks", json=hook).status_code in (201, 422)
    schedule = {"model_id": "evil-0", "cron_expression": "15 6 * * *", "sample_size": 3, "timezone": "UTC"}
    schedule_id = api.post("/api/schedules", json=schedule).json()["model_id"]
    first, second = (finished_run(api, model_id=f"evil-{number}") for number in (0, 1))
    site.engine.behaviour = failing_runner
    failed = finished_run(api, model_id="evil-2")
    problem = SAMPLE_FILE.read_text().splitlines()[0].encode()
    api.put("/api/datasets/evil", params={"filename": f"{SHORT[1]}.jsonl"[-200:]}, content=problem)
    api.put("/api/datasets/worse", params={"filename": "x.jsonl"}, content=EVERYTHING.encode())
    until(lambda: all(job["state"] != "running" for job in api.get("/api/datasets").json()["jobs"]))
    run = f"/runs/{first}"
    pages = [f"{run}/items/2", "/models", "/settings", "/", "/runs", run, f"{run}?outcome=wrong_answer", f"{run}/items/0"]
    pages += [f"/runs/{failed}", f"/compare?run={first}&run={second}", "/leaderboard", "/datasets", "/fleet", "/schedules"]
    pages += ["/models/evil-0", "/datasets/evil", f"/problems?benchmark=sample&id={json.loads(problem)['question_id']}"]
    return [*pages, f"/schedules/{schedule_id}", "/runs/new?model=evil-0", "/schedules/new?model=evil-0"]


def test_what_models_and_people_write_stays_text(visit: Callable[..., Visitor], site: Site, api: httpx.Client) -> None:
    assert len(PAYLOADS) >= 100
    pages = fill_everything(site, api)
    visitor = visit(viewport={"width": 1600, "height": 900})
    page = visitor.page
    page.on("dialog", lambda box: visitor.complaints.append(box.message))
    shown = []
    for path in pages:
        page.goto(site.url + path)
        assert inserted(page) == [], path
        text = page.locator("main").inner_text()
        shown.append(sum(each.split("\n")[0].strip()[:30] in text for each in PAYLOADS))
    assert min(shown[:2]) > 80, shown  # they are really there
    assert page.evaluate("window.hit") is None

    # What comes back with an address or a form.
    cookies = {each["name"]: each["value"] for each in visitor.context.cookies()}
    headers = {"sec-fetch-site": "same-origin", "accept": "text/html"}
    with httpx.Client(base_url=site.url, cookies=cookies, headers=headers, timeout=300) as client:
        answers = [client.get(f"/nothing/{quote(text)}") for text in SHORT]
        answers += [client.get("/runs", params={"status": text, "benchmark": text, "model": text}) for text in SHORT[:8]]
        answers += [client.get("/schedules/new", params={"cron": text, "timezone": text, "model": text}) for text in SHORT]
        answers += [client.post("/models", data={"slug": text, "provider": text, "name": text}) for text in SHORT]
        answers += [client.post("/settings/webhooks", data={"url": text}) for text in SHORT]
        answers += [client.post("/datasets", data={"name": text, "source": text}) for text in SHORT]
        answers += [client.get("/login", params={"next": text}) for text in SHORT]
    assert {answer.status_code for answer in answers} <= {200, 303, 404, 422}
    for answer in answers:
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert inserted(page, answer.text) == [], answer.url
