"""Archives in Azure Blob Storage, against Microsoft's own emulator."""

from __future__ import annotations

import base64
import hmac
import os
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from email.utils import formatdate
from pathlib import Path

import httpx
import pytest

from orchestrator.archives.object_store import StoreError, open_store
from orchestrator.settings import Settings

ROOT = Path(__file__).parents[2]
ACCOUNT = "yard"
KEY = base64.b64encode(b"key of the emulator in this test").decode()


def create_container(endpoint: str) -> None:
    """By hand: the service never makes one."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    signed = "PUT" + "\n" * 12 + "".join(f"{name}:{value}\n" for name, value in headers.items())
    signed += f"/{ACCOUNT}/{ACCOUNT}/archives\nrestype:container"
    signature = base64.b64encode(hmac.digest(base64.b64decode(KEY), signed.encode(), "sha256")).decode()
    headers["authorization"] = f"SharedKey {ACCOUNT}:{signature}"
    httpx.put(f"{endpoint}/archives?restype=container", headers=headers).raise_for_status()


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    install = [ROOT / "scripts" / "node-package", "azure-emulator", "tests/e2e/azure_emulator"]
    node = subprocess.run(install, check=True, capture_output=True, text=True).stdout.strip()
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    program = ROOT / "build" / "azure-emulator" / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    options = ["--blobPort", str(port), "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    environment = {**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
    command, folder = [node, program, *options], tmp_path_factory.mktemp("azure")
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, start_new_session=True) as process,
    ):
        endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
        deadline = time.monotonic() + 60
        while True:
            try:
                create_container(endpoint)
                break
            except httpx.ConnectError:
                assert time.monotonic() < deadline
                assert process.poll() is None
                time.sleep(0.1)
        for name, value in {"ACCOUNT_NAME": ACCOUNT, "ACCOUNT_KEY": KEY, "ENDPOINT": endpoint}.items():
            monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
        yield endpoint
        os.killpg(process.pid, signal.SIGTERM)  # its command is a wrapper around the program


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content[: 1 << 20]
    yield content[1 << 20 :]


@pytest.mark.anyio
async def test_objects_are_stored_signed_for_listed_and_removed(emulator: str) -> None:
    store = open_store(Settings(archive_store="az://archives/team/yard"), retries=0, part_bytes=5 << 20)
    assert store is not None
    contents = {"small.tar.gz": os.urandom(1000), "large.tar.gz": os.urandom(11 << 20)}
    for name, content in contents.items():
        await store.put("r-1", name, pieces(content))
        assert httpx.get(await store.signed_url("r-1", name)).content == content
    assert {each.key: each.size_bytes for each in await store.list()} == {
        f"team/yard/r-1/{name}": len(content) for name, content in contents.items()
    }

    async def broken() -> AsyncIterator[bytes]:
        yield contents["large.tar.gz"]
        raise RuntimeError("the database went away")

    with pytest.raises(RuntimeError):
        await store.put("r-2", "half.tar.gz", broken())
    await store.delete("r-1", "small.tar.gz")
    await store.delete("r-1", "small.tar.gz")
    assert [each.key for each in await store.delete_all()] == ["team/yard/r-1/large.tar.gz"]
    assert await store.list() == []


@pytest.mark.anyio
async def test_a_refusal_is_told_in_the_stores_own_words(emulator: str) -> None:
    store = open_store(Settings(archive_store="az://nothing-here"), retries=0)
    assert store is not None
    with pytest.raises(StoreError, match=r"answered 404: The specified container does not exist\.$"):
        await store.put("r", "result.tar.gz", pieces(b"x"))
