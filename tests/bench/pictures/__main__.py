"""Pictures of every page, as a lab sees it after some weeks: at 390, 1024 and 1440 px, light and dark.

    .venv/bin/python -m tests.bench.pictures FOLDER [--only NAME ...] [--looks 1440-light ...] [--check]

The weeks are lived once (in about two minutes of a quiet machine) and kept in FOLDER/data; pictures go to
FOLDER/pictures. `--check` asks axe about every page in every look, as well. `--docs` takes those of the documents
instead, into docs/images. `--serve` keeps the service for a browser of your own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import threading
from datetime import UTC, datetime
from pathlib import Path

from playwright.sync_api import Page

from orchestrator.engines.fake.engine import FakeEngine
from orchestrator.settings import Settings
from tests.bench.pictures.month import SPEED, Lab, LabClock
from tests.bench.pictures.provider import Provider
from tests.bench.pictures.runner import LabRunner
from tests.e2e.browsing import assert_accessible, chromium, visiting
from tests.served import TOKEN, Service, served

IMAGES = Path(__file__).parents[3] / "docs" / "images"
DOCUMENTED = {
    "dashboard": "overview",
    "run": "run-live",
    "item": "item-wrong-answer",
    "leaderboard": "leaderboard",
    "model": "model",
    "compare": "compare",
    "schedules": "schedule",
    "alert": "alert",
    "dialog": "new-run",
}
"""Pictures of the documents, and the pages that they show."""
NO_BANNER = "document.querySelectorAll('main > .banner[role=note]').forEach(each => each.remove())"
"""It says that these containers are those of tests."""
LOOKS = [f"{width}-{theme}" for width in (1440, 1024, 390) for theme in ("light", "dark")]


def pages(known: dict[str, str], client_items: dict[str, int]) -> dict[str, str]:
    run = f"/runs/{known['run']}"
    others = ("live", "budget", "failed", "killed", "cancelled", "queued", "small")
    found = {"overview": "/", "runs": "/runs", "runs-failed": "/runs?status=failed&status=cancelled", "run": run}
    found |= {f"run-{each}": f"/runs/{known[each]}" for each in others}
    found |= {f"item-{kind}": f"{run}/items/{n}" for kind, n in client_items.items()}
    found |= {
        "compare": f"/compare?run={known['run']}&run={known['other']}",
        "alert": f"/alerts/{known['alert']}",
        "compare-three": f"/compare?run={known['run']}&run={known['other']}&run={known['small']}",
        "leaderboard": "/leaderboard?benchmark=contest",
        "schedules": "/schedules",
        "schedule": "/schedules/atlas-large",
        "schedule-new": "/schedules/new",
        "alerts": "/alerts?show=all",
        "models": "/models",
        "model": "/models/atlas-large",
        "model-weak": "/models/demo-weak",
        "datasets": "/datasets",
        "dataset": "/datasets/contest",
        "problem": "/problems?benchmark=contest&id=le1003",
        "benchmarks": "/benchmarks",
        "benchmark": "/benchmarks/contest",
        "benchmark-new": "/benchmarks/new",
        "batches": "/batches",
        "batch": f"/batches/{known['batch']}",
        "eval-sets": "/eval-sets",
        "eval-set": f"/eval-sets/{known['set']}",
        "label": f"/eval-sets/{known['set']}/label",
        "eval": f"/evals/{known['eval']}",
        "contradictions": f"/evals/{known['eval']}/contradictions",
        "generate": f"/eval-sets/{known['set']}/generate",
        "jobs": "/jobs",
        "job": f"/jobs/{known['job']}",
        "fleet": "/fleet",
        "providers": "/providers",
        "keys": "/keys",
        "limits": "/limits",
        "settings": "/settings",
        "members": "/members",
        "account": "/account",
        "audit": "/audit",
        "new-run": "/runs/new",
        "new-command": "/runs/new/command",
        "new-harness": "/runs/new/harness",
        "nothing": "/nothing",
        "docs": "/docs",
    }
    return found


def settings_for(folder: Path) -> Settings:
    values = {"data": folder / "data", "token": TOKEN, "port": 0, "runner_port": 0, "reconcile_s": 0.2}
    return Settings(
        **values,
        request_timeout_s=600, min_free_disk_bytes=0, min_free_disk_share=0.0, lease_s=7200, suspect_s=7200,
        webhook_allow=("127.0.0.1",), vcpu_capacity=4, vcpu_hour_usd=0.05, max_instances=12,
    )  # fmt: skip


async def serve(folder: Path, options: argparse.Namespace) -> None:
    kept = folder / "known.json"
    clock = LabClock(datetime(2026, 1, 1, tzinfo=UTC), 1 if kept.exists() else SPEED)
    if kept.exists():
        clock.set(datetime.now(UTC))
    runner = LabRunner(clock)
    engine = FakeEngine(behaviour=runner, now=clock.now)
    async with Provider() as provider, served(settings_for(folder), engine=engine, clock=clock) as service:
        lab = Lab(service, clock, runner, provider)
        if kept.exists():
            known = json.loads(kept.read_text())
            await lab.provider_moved()
        else:
            known = await lab.live()
        await lab.now(known)
        kept.write_text(json.dumps(known))
        items = await some_items(service, known["run"])
        print(service.url, f"/login?token={TOKEN}", flush=True)
        if options.serve:
            await asyncio.Event().wait()
        done = threading.Thread(target=shoot, args=(service.url, folder / "pictures", pages(known, items), options))
        done.start()
        while done.is_alive():
            await asyncio.sleep(0.1)
        await engine.end_all()


async def some_items(service: Service, run_id: str) -> dict[str, int]:
    """The first item of each outcome."""
    found: dict[str, int] = {}
    answer = await service.client.get(f"/api/container-runs/{run_id}/items", params={"limit": 200})
    for item in answer.json()["items"]:
        found.setdefault(item["outcome"].replace("_", "-"), item["position"])
    return found


def shoot(url: str, folder: Path, paths: dict[str, str], options: argparse.Namespace) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    looks = options.looks or LOOKS
    chosen = {name: path for name, path in paths.items() if not options.only or name in options.only}
    with chromium() as browser, visiting(browser, url, viewport={"width": 1440, "height": 900}) as visitor:
        page = visitor.page
        page.goto(f"{url}/login?token={TOKEN}")
        if options.docs:
            document(page, url, paths)
            return
        for name, path in chosen.items():
            page.goto(url + path)
            for look in looks:
                width, theme = look.split("-")
                page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
                page.set_viewport_size({"width": int(width), "height": 900})
                page.wait_for_timeout(150)
                complain(page, name, look, options.check)
                page.screenshot(path=folder / f"{name}-{look}.png", full_page=True)


def document(page: Page, url: str, paths: dict[str, str]) -> None:
    page.set_viewport_size({"width": 1360, "height": 860})
    for picture, name in DOCUMENTED.items():
        page.goto(url + paths[name])
        page.evaluate(NO_BANNER)
        page.wait_for_timeout(500)
        page.screenshot(path=IMAGES / f"{picture}.png")
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    page.goto(url + paths["schedule"])
    page.evaluate(NO_BANNER)
    page.wait_for_timeout(500)
    page.screenshot(path=IMAGES / "phone.png")


def complain(page: Page, name: str, look: str, check: bool) -> None:
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if wide > 0:
        print(f"{name} {look}: wider than the screen by {wide}")
    if check:
        try:
            assert_accessible(page)
        except AssertionError as error:
            print(f"{name} {look}: {error}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--looks", nargs="*", default=[])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--serve", action="store_true")
    options = parser.parse_args()
    asyncio.run(serve(options.folder, options))


if __name__ == "__main__":
    main()
