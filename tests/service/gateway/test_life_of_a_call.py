"""The files through which one model call passes are those that the architecture document lists."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import pytest
from sqlmodel import Session

from orchestrator.accounts.vault import load_vault
from orchestrator.db.session import Database
from orchestrator.gateway.edge.router import Gateway
from orchestrator.gateway.providers.directory import ProviderDirectory
from orchestrator.gateway.wiring import open_gateway
from orchestrator.http.problems import not_found
from orchestrator.models.tables import LlmModel
from orchestrator.provider_keys.service import KeyPolicy, ProviderKeys
from orchestrator.runs.queueing.plan import PositionCache
from orchestrator.runs.tables import Attempt, ContainerRun
from orchestrator.settings import Settings
from orchestrator.system.identifiers import token_hash
from runner.contract.run_spec import ModelSpec, Protocol
from runner.llm.calls import Calls
from runner.llm.client import Prompt, open_client
from tests.rows import a_benchmark_task
from tests.service.gateway.fake_provider import FakeProvider
from tests.service.gateway.gateway_server import serving

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]
COUNTED = ("orchestrator/gateway/", "runner/llm/")
MOST_FILES = 26


class StillClock:
    """No time passes, so that what is known of a token stays known however slow the machine is."""

    def now(self) -> datetime:
        return datetime(2026, 11, 16, tzinfo=UTC)

    def monotonic(self) -> float:
        return 1000.0


class FilesRun:
    """Our files in which a function is entered while `watching`, in this thread and in those that start after `install`."""

    def __init__(self) -> None:
        self.watching = False
        self.files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if self.watching and event == "call" and frame.f_code.co_name != "<module>":
            name = frame.f_code.co_filename
            if name.startswith(f"{ROOT}/"):
                self.files.add(name.removeprefix(f"{ROOT}/"))

    @contextlib.contextmanager
    def install(self) -> Iterator[None]:
        sys.setprofile(self)
        threading.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def seed(db: Session) -> None:
    now = datetime.now(UTC)
    model = LlmModel(
        id=1, slug="m", provider="openai", name="m", protocol="openai_chat", input_price=1.0, output_price=2.0,
        created_at=now, updated_at=now,
    )  # fmt: skip
    run = ContainerRun(
        id="run-1", model_id=1, benchmarks=["sample"], sample_size=1, samples_per_problem=2, instance_type="lite",
        deadline_s=3600, task=a_benchmark_task(problem_ids=["p"]), budget_usd=1.0,
        status="running", attempt=1, created_at=now, started_at=now,
    )  # fmt: skip
    attempt = Attempt(
        run_id="run-1", number=1, token_hash=token_hash("token"), engine="fake", instance_type="lite",
        container_name="x", dispatched_at=now,
    )  # fmt: skip
    for row in (model, run, attempt):
        db.add(row)
        db.flush()


async def one_call(data: Path, monkeypatch: pytest.MonkeyPatch, run: FilesRun) -> str:
    """What a provider answers to the runner's client through a gateway that is put together as the service does it."""
    db, clock = Database(f"sqlite:///{data / 'benchyard.db'}"), StillClock()
    await db.write(seed)

    async def nobody(user_id: int) -> None:
        return None

    async with serving(FakeProvider().app()) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        directory, vault = ProviderDirectory(os.environ), load_vault(None, None, data)
        keys = ProviderKeys(db, clock, vault, directory, KeyPolicy(system_for_all=True), nobody)
        async with (
            open_gateway(Settings(data=data), db, clock, "test", keys, PositionCache()) as deps,
            serving(Gateway(deps, not_found)) as url,
        ):
            spec = ModelSpec(slug="m", provider="openai", name="m", protocol=Protocol.OPENAI_CHAT)
            client = open_client(spec, f"{url}/gateway", "token")
            calls = Calls(client, 1, lambda *args, **facts: None)
            await calls.ask(Prompt("", "first", "1"), "sample/p/0/0")  # looks the token up, opens connections
            run.watching = True
            completion = await calls.ask(Prompt("", "hello", "1"), "sample/p/1/0")
            run.watching = False
            await client.close()
    await db.close()
    return completion.text


async def test_one_call_passes_the_files_that_the_document_lists(
    tmp_path: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(sqlite_template, tmp_path / "benchyard.db")
    run = FilesRun()
    with run.install():
        text = await one_call(tmp_path, monkeypatch, run)
    assert text
    passed = {file for file in run.files if file.startswith(COUNTED)}
    document = (ROOT / "docs/architecture.md").read_text()
    section = document[document.index("## The life of a model call") :].split("\n## ", 1)[0]
    listed = set(re.findall(r"`((?:orchestrator|runner)/[a-z_/]+\.py)`", section))
    assert passed == listed
    assert len(listed) <= MOST_FILES
