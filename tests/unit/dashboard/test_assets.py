"""Static files are kept by browsers under the digest of their release only; missing packages of others are noticed."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from orchestrator.cli.local import doctor
from orchestrator.dashboard.assets import STATIC, Assets, BrowserPackages, browser_packages, version

LOCK = STATIC.parent / "packages" / "package-lock.json"


@pytest.mark.anyio
async def test_only_the_digest_of_this_release_is_kept_for_good(tmp_path: Path) -> None:
    (tmp_path / "app.js").write_text("let a = 1;")
    app = Starlette(routes=[Mount("/static", Assets(tmp_path))])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answers = [
            await client.get(f"/static/{part}app.js") for part in ("", f"{version(tmp_path)}/", "v-0123456789abcdef/")
        ]
        missing = await client.get(f"/static/{version(tmp_path)}/../../secret")
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert ["immutable" in answer.headers["cache-control"] for answer in answers] == [False, True, False]
    assert missing.status_code == 404


@pytest.mark.anyio
async def test_script_is_sent_compressed_to_whom_takes_it(tmp_path: Path) -> None:
    text = "let a = 1;\n" * 1000
    (tmp_path / "app.js").write_text(text)
    (tmp_path / "font.woff2").write_bytes(b"f" * 1000)
    app = Starlette(routes=[Mount("/static", Assets(tmp_path))])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        small = await client.get("/static/app.js", headers={"accept-encoding": "br, gzip"})
        whole = await client.get("/static/app.js", headers={"accept-encoding": "identity"})
        same = await client.get("/static/app.js", headers={"if-none-match": small.headers["etag"]})
        font = await client.get("/static/font.woff2")
        part = await client.get("/static/app.js", headers={"range": "bytes=0-9", "accept-encoding": "identity"})
        (tmp_path / "app.js").write_text("let b = 2;")
        changed = await client.get("/static/app.js")
    assert (small.text, small.headers["content-encoding"], small.headers["vary"]) == (text, "gzip", "accept-encoding")
    assert int(small.headers["content-length"]) < 200
    assert (whole.text, whole.headers["vary"]) == (text, "accept-encoding")
    assert "content-encoding" not in whole.headers
    assert (same.status_code, font.content, part.text) == (304, b"f" * 1000, "let a = 1;")
    assert "content-encoding" not in font.headers
    assert changed.text == "let b = 2;"


def test_all_script_together_is_light() -> None:
    """No page loads all of it: their packages and every module of ours."""
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 6)) for path in STATIC.rglob("*.js")}
    assert sum(sizes.values()) < 300_000, sizes


def test_a_changed_file_changes_the_address(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, text in ((first, "1"), (second, "2")):
        folder.mkdir()
        (folder / "a.js").write_text(text)
    assert version(first) != version(second)


def test_every_package_is_pinned_by_its_sha512() -> None:
    packages = {name: package for name, package in json.loads(LOCK.read_text())["packages"].items() if name}
    wanted = json.loads((LOCK.parent / "package.json").read_text())["dependencies"]
    assert {f"node_modules/{name}" for name in wanted} <= set(packages)
    for package in packages.values():
        algorithm, _, digest = package["integrity"].partition("-")
        assert (algorithm, len(base64.b64decode(digest))) == ("sha512", 64)
        assert "resolved" not in package


def test_the_doctor_says_when_packages_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert browser_packages(tmp_path) == BrowserPackages(charts=False, mathematics=False, fonts=False)
    assert browser_packages().complete, "scripts/browser-packages gets them"
    assert doctor._pages().verdict == doctor.OK
    monkeypatch.setattr(doctor, "browser_packages", lambda: browser_packages(tmp_path))
    check = doctor._pages()
    assert check.verdict == doctor.WARN
    assert "scripts/browser-packages" in check.sentence
