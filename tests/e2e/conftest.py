"""One browser for all tests of a module, and windows on the module's `site`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser

from tests.e2e.browsing import PATIENCE_S, Site, Visitor, chromium, visiting
from tests.served import TOKEN


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def visit(browser: Browser, site: Site) -> Iterator[Callable[..., Visitor]]:
    """Opens windows that are signed in."""
    with ExitStack() as stack:

        def make(**options: Any) -> Visitor:
            visitor = stack.enter_context(visiting(browser, site.url, **options))
            visitor.page.goto(f"{site.url}/login?token={TOKEN}")
            return visitor

        yield make


@pytest.fixture
def api(site: Site) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=site.url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE_S) as client:
        yield client
