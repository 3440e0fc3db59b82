"""Signing in with a provider that is not ours: the certified oidc-provider from npm, in Chromium."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect

from orchestrator.sign_in.sessions import ROTATE_AFTER
from tests.e2e.browsing import Site, open_site, patient, until
from tests.manual_clock import ManualClock
from tests.served import TOKEN
from tests.service.dashboard.stepwise_runner import story_runner

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent / "identity_provider"
COOKIE = "benchyard_session"


class Idp:
    """The provider as a process of its own."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer

    def mood(self, **mood: Any) -> None:
        httpx.post(f"{self.issuer}/mood", json=mood).raise_for_status()


@pytest.fixture(scope="module")
def node() -> str:
    command = [ROOT / "scripts" / "node-package", "identity-provider", "tests/e2e/identity_provider"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class ProviderClock(ManualClock):
    """Goes with the real time, as the provider's does, however long a busy machine takes; a test may advance it."""

    def __init__(self) -> None:
        super().__init__(datetime.now(UTC))
        self._set_at = time.monotonic()

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=time.monotonic() - self._set_at)

    def set(self, moment: datetime) -> None:
        super().set(moment)
        self._set_at = time.monotonic()


@pytest.fixture(scope="module")
def idp_and_site(tmp_path_factory: pytest.TempPathFactory, data_template: Path, node: str) -> Iterator[tuple[Idp, Site]]:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    issuer = f"http://127.0.0.1:{port}"
    with ExitStack() as stack:
        site = stack.enter_context(
            open_site(
                tmp_path_factory.mktemp("sign-in"),
                data_template,
                story_runner(pause_s=0.1),
                clock=ProviderClock(),
                oidc_issuer=issuer,
                oidc_client_id="benchyard",
                oidc_client_secret="canary-client-secret",
                oidc_scopes="openid profile email offline_access",
                session_idle_s=4 * 3600,
                session_max_s=24 * 3600,
            )
        )
        work = ROOT / "build" / "identity-provider"
        (work / "provider.mjs").write_text((HERE / "provider.mjs").read_text())
        environment = {
            "PORT": str(port),
            "CLIENT_REDIRECT": f"{site.url}/login/callback",
            "CLIENT_AFTER": f"{site.url}/login",
            "NODE_NO_WARNINGS": "1",
        }
        command = [node, "provider.mjs"]
        process = stack.enter_context(subprocess.Popen(command, cwd=work, env=environment, start_new_session=True))
        stack.callback(os.killpg, process.pid, signal.SIGTERM)  # its command is a wrapper around the program
        until(lambda: _answers(f"{issuer}/.well-known/openid-configuration"))
        yield Idp(issuer), site


@pytest.fixture
def idp(idp_and_site: tuple[Idp, Site]) -> Iterator[Idp]:
    idp, site = idp_and_site
    site.clock.set(datetime.now(UTC))  # the provider goes by the real time
    yield idp
    idp.mood()


@pytest.fixture
def site(idp_and_site: tuple[Idp, Site]) -> Site:
    return idp_and_site[1]


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.HTTPError:
        return False


@contextmanager
def window(browser: Browser) -> Iterator[tuple[Page, BrowserContext]]:
    context = patient(browser.new_context())
    try:
        yield context.new_page(), context
    finally:
        context.close()


def agree(page: Page, who: str) -> None:
    """What a person does at the provider: give a name, then consent."""
    page.get_by_placeholder("Enter any login").fill(who)
    page.get_by_placeholder("and password").fill("x")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def sign_in(page: Page, site: Site, who: str, wanted: str = "/runs") -> None:
    page.goto(f"{site.url}{wanted}")
    page.get_by_role("link", name="Sign in with 127.0.0.1").click()
    agree(page, who)


def cookie_of(context: BrowserContext) -> dict[str, Any]:
    return next(dict(each) for each in context.cookies() if each["name"] == COOKIE)


def account(context: BrowserContext, site: Site) -> dict[str, Any]:
    answer = context.request.get(f"{site.url}/api/account")
    assert answer.status == 200, answer.text()
    found: dict[str, Any] = answer.json()
    return found


def test_in_and_become_owner_and_add_a_member_and_out(browser: Browser, idp: Idp, site: Site) -> None:
    with window(browser) as (page, context), window(browser) as (other, elsewhere):
        sign_in(page, site, "ada", "/runs?status=failed")
        page.wait_for_url(f"{site.url}/runs?status=failed")
        expect(page.get_by_role("navigation", name="Main")).to_contain_text("Name of ada (read)")
        cookie = cookie_of(context)
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["secure"]) == (True, "Lax", False)
        assert account(context, site)["role"] == "viewer"

        # The first owner shows the installation's token; a wrong one is refused.
        page.goto(f"{site.url}/account")
        for token in ("wrong", TOKEN):
            page.get_by_text("Become an owner").first.click()
            page.get_by_label("Installation token").fill(token)
            page.get_by_role("button", name="Become an owner").click()
            page.wait_for_load_state()
        assert account(context, site)["role"] == "owner"

        # Somebody else comes as a viewer, is made a member of a new workspace, and sees that one alone.
        sign_in(other, site, "bob")
        other.wait_for_url(f"{site.url}/runs")
        page.goto(f"{site.url}/members")
        page.locator("#n-slug").fill("lab")
        page.locator("#n-name").fill("The lab")
        page.get_by_role("button", name="Create workspace").click()
        page.goto(f"{site.url}/account")
        page.get_by_label("Workspace").select_option("lab")
        page.get_by_role("button", name="Switch", exact=True).click()
        page.goto(f"{site.url}/members")
        expect(page.locator("h1")).to_have_text("Members of The lab")
        page.get_by_label("Email").fill("bob@example.com")
        page.locator("#m-role").select_option("member")
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.get_by_role("table", name="Members")).to_contain_text("bob@example.com")
        assert {each["slug"]: each["role"] for each in account(elsewhere, site)["workspaces"]} == {
            "default": "viewer",
            "lab": "member",
        }
        body = {"model_id": "demo-strong", "sample_size": 2}
        same = {"sec-fetch-site": "same-origin"}
        refused = elsewhere.request.post(f"{site.url}/api/container-runs", data=body, headers=same)
        lab = {**same, "x-benchyard-workspace": "lab"}
        made = elsewhere.request.post(f"{site.url}/api/container-runs", data=body, headers=lab)
        assert (refused.status, made.status) == (403, 202)
        run = f"{site.url}/api/container-runs/{made.json()['run_id']}"
        assert elsewhere.request.get(run).status == 404
        assert elsewhere.request.get(run, headers=lab).status == 200

        # Out, here and at the provider.
        page.get_by_role("button", name="Sign out").last.click()
        page.wait_for_url(re.compile(re.escape(idp.issuer) + "/session/end"))
        page.get_by_role("button", name=re.compile("sign me out", re.IGNORECASE)).click()
        page.wait_for_url(re.compile(f"{site.url}/login.*"))
        page.goto(f"{site.url}/runs")
        page.wait_for_url(re.compile(f"{site.url}/login.*"))
        stolen = httpx.get(f"{site.url}/api/account", cookies={COOKIE: cookie["value"]})
        assert stolen.status_code == 401


def test_secrets_rotate_tokens_are_refreshed_and_a_refusal_ends_it(browser: Browser, idp: Idp, site: Site) -> None:
    with window(browser) as (page, context):
        sign_in(page, site, "eve")
        page.wait_for_url(f"{site.url}/runs")
        first = cookie_of(context)["value"]
        # After a quarter of an hour the secret changes; the provider confirms the person.
        idp.mood(shift=900)  # the provider's time passes too
        site.clock.advance(ROTATE_AFTER.total_seconds() + 1)
        page.goto(f"{site.url}/runs")
        second = cookie_of(context)["value"]
        assert second != first
        page.goto(f"{site.url}/runs")
        # The old one is good for another moment; then it must have been copied, and both end.
        assert httpx.get(f"{site.url}/api/account", cookies={COOKIE: first}).status_code == 200
        site.clock.advance(120)
        assert httpx.get(f"{site.url}/api/account", cookies={COOKIE: first}).status_code == 401
        page.goto(f"{site.url}/runs")
        page.wait_for_url(re.compile(f"{site.url}/login.*"))

    site.clock.set(datetime.now(UTC))
    idp.mood()
    with window(browser) as (page, _):
        sign_in(page, site, "eve")
        page.wait_for_url(f"{site.url}/runs")
        idp.mood(away=True)
        site.clock.advance(300)
        page.goto(f"{site.url}/runs")  # a provider that is away ends nothing
        expect(page.locator("h1")).to_be_visible()
        idp.mood(shift=360)
        site.clock.advance(60)
        page.goto(f"{site.url}/runs")
        expect(page.get_by_role("navigation", name="Main")).to_contain_text("Name of eve")
        idp.mood(refuseRefresh=True)
        site.clock.advance(300)
        page.goto(f"{site.url}/runs")
        page.wait_for_url(re.compile(f"{site.url}/login.*"))


def test_idle_and_everywhere(browser: Browser, idp: Idp, site: Site) -> None:
    with window(browser) as (page, context), window(browser) as (other, _):
        for each in (page, other):
            sign_in(each, site, "dan")
            each.wait_for_url(f"{site.url}/runs")
        page.goto(f"{site.url}/account")
        expect(page.get_by_role("table", name="Sessions").locator("tbody tr")).to_have_count(2)
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Sign out everywhere").click()
        page.wait_for_url(f"{site.url}/login")
        other.goto(f"{site.url}/runs")
        other.wait_for_url(re.compile(f"{site.url}/login.*"))

        sign_in_again = page.get_by_role("link", name="Sign in with 127.0.0.1")
        sign_in_again.click()  # the provider still knows dan
        page.get_by_role("button", name="Continue").click()
        page.wait_for_url(f"{site.url}/")
        assert account(context, site)["name"] == "Name of dan"
        site.clock.advance(4 * 3600 + 1)
        assert context.request.get(f"{site.url}/api/account").status == 401


def _arrivals(page: Page, site: Site) -> list[str]:
    seen: list[str] = []

    def look(request: Request) -> None:
        if request.url.startswith(f"{site.url}/login/callback"):
            seen.append(request.url)

    page.on("request", look)
    return seen


def test_a_code_is_used_once_and_only_by_the_browser_that_began(browser: Browser, idp: Idp, site: Site) -> None:
    with window(browser) as (page, _), window(browser) as (thief, _):
        seen = _arrivals(page, site)
        sign_in(page, site, "ada")
        page.wait_for_url(f"{site.url}/runs")
        page.goto(seen[0])
        expect(page.get_by_role("alert")).to_contain_text("was used already")
        # Begun by one, brought back by another.
        begun = httpx.get(f"{site.url}/login/provider").headers["location"]
        thief.goto(begun)
        agree(thief, "ada")
        expect(thief.get_by_role("alert")).to_contain_text("another browser")
        thief.goto(f"{site.url}/login/callback?code=x&state=made-up")
        expect(thief.get_by_role("alert")).to_contain_text("Sign in again")


MOODS = {
    "wrong nonce": ({"claims": {"nonce": "of another sign-in"}}, "nonce"),
    "wrong audience": ({"claims": {"aud": "another-client"}}, "not for this client"),
    "several audiences and another party": ({"claims": {"aud": ["benchyard", "x"], "azp": "x"}}, "another client"),
    "wrong issuer": ({"claims": {"iss": "https://other.example"}}, "was issued by"),
    "long expired": ({"shift": -600}, "has expired"),
    "from the future": ({"shift": 600}, "from the future"),
    "signed by somebody else": ({"foreignKey": True}, "signature"),
    "nobody": ({"claims": {"sub": ""}}, "names no user"),
}


def test_what_is_not_believed(browser: Browser, idp: Idp, site: Site) -> None:
    with window(browser) as (page, context):
        for number, (mood, said) in enumerate(MOODS.values()):
            idp.mood(**mood)
            if number == 0:
                sign_in(page, site, "mallory")
            else:  # the provider knows who it is
                page.get_by_role("link", name="Sign in with 127.0.0.1").click()
                page.get_by_role("button", name="Continue").click()
            expect(page.get_by_role("alert")).to_contain_text(said)
            expect(page.get_by_role("alert")).to_contain_text("Sign in again")
            assert not [each for each in context.cookies() if each["name"] == COOKIE]


def test_a_small_skew_and_new_keys_are_no_trouble(browser: Browser, idp: Idp, site: Site) -> None:
    idp.mood(shift=-150, newKey="second")
    with window(browser) as (page, _):
        sign_in(page, site, "ada")
        page.wait_for_url(f"{site.url}/runs")


def test_saying_no_and_a_provider_that_is_away(browser: Browser, idp: Idp, site: Site) -> None:
    with window(browser) as (page, _):
        page.goto(f"{site.url}/login")
        page.get_by_role("link", name="Sign in with 127.0.0.1").click()
        page.get_by_role("link", name="Cancel").click()
        expect(page.get_by_role("alert")).to_contain_text("did not agree")
        idp.mood(away=True)
        page.get_by_role("link", name="Sign in with 127.0.0.1").click()
        agree(page, "ada")
        expect(page.get_by_role("alert")).to_contain_text("Try again shortly")


def test_nothing_of_the_provider_is_kept_in_clear(browser: Browser, idp: Idp, site: Site) -> None:
    with window(browser) as (page, context):
        seen = _arrivals(page, site)
        sign_in(page, site, "carol")
        page.wait_for_url(f"{site.url}/runs")
        secrets = [cookie_of(context)["value"], parse_qs(urlsplit(seen[0]).query)["code"][0], "canary-client-secret"]
        files = [path for path in site.data.rglob("*") if path.is_file()]
        kept = b"".join(path.read_bytes() for path in files)
        assert b"carol@example.com" in kept
        assert not [secret for secret in secrets if secret.encode() in kept]
        assert b"eyJhbGciOiJSUzI1NiIs" not in kept  # how every id token begins


def test_the_command_line_signs_in_by_browser_and_by_device_code(
    browser: Browser, idp: Idp, site: Site, tmp_path: Path
) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "BENCHYARD_URL": site.url,
        "BENCHYARD_DATA": str(tmp_path / "none"),
        "BROWSER": "true",
    }
    command = str(Path(sys.executable).parent / "benchyard")

    def whoami() -> dict[str, Any]:
        done = subprocess.run([command, "whoami", "--json"], env=environment, capture_output=True, text=True, check=True)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    with window(browser) as (page, _):
        sign_in(page, site, "frank")
        page.wait_for_url(f"{site.url}/runs")
        with subprocess.Popen(
            [command, "login", "--browser"], env=environment, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            address = next(line for line in process.stderr if "/account/command-line" in line).strip()
            page.goto(address)
            page.get_by_role("button", name="Allow").click()
            assert process.wait(300) == 0, process.stderr.read()
        assert (whoami()["name"].startswith("command line"), whoami()["role"]) == (True, "viewer")
        kept = tmp_path / ".config" / "benchyard" / "logins.json"
        assert kept.stat().st_mode & 0o777 == 0o600
        subprocess.run([command, "logout"], env=environment, check=True, capture_output=True)

        with subprocess.Popen([command, "login"], env=environment, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            address = next(found[0] for line in process.stderr if (found := re.search(r"http\S+", line)))
            page.goto(address)
            while not page.get_by_text(re.compile("success", re.IGNORECASE)).count():  # a consent may be asked for as well
                with page.expect_navigation():
                    page.get_by_role("button", name="Continue").first.click()
            assert process.wait(300) == 0, process.stderr.read()
        assert whoami()["user_id"] is not None
