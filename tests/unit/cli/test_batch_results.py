"""Archives of a batch as files: what an object store gives must be what was put there."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.cli.api.client import Client
from orchestrator.cli.api.connection import Connection
from orchestrator.cli.errors import CliError
from orchestrator.cli.files.batch_results import fetch


def batch_with(sha256: str) -> dict[str, Any]:
    member = {"run_id": "r-1", "status": "completed", "archive": {"place": "s3", "sha256": sha256}}
    return {"id": "b-1", "external_id": 1, "instance_types": [{"instance_type": "lite", "members": [member]}]}


def client_that_gives(content: bytes) -> Client:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/matrix"):
            return httpx.Response(200, json={})
        if request.url.host == "store.test":
            return httpx.Response(200, content=content)
        return httpx.Response(307, headers={"location": "https://store.test/archives/result.tar.gz"})

    return Client(Connection("http://127.0.0.1:8000", "t"), httpx.MockTransport(answer))


def test_what_is_not_what_was_put_there_is_not_kept(tmp_path: Path) -> None:
    batch = batch_with(hashlib.sha256(b"archive").hexdigest())
    with pytest.raises(CliError, match="does not have the recorded checksum"):
        fetch(client_that_gives(b"<html>sign in</html>"), batch, tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    folder, new = fetch(client_that_gives(b"archive"), batch, tmp_path)
    assert [Path(name).read_bytes() for name in new] == [b"archive"]
    assert fetch(client_that_gives(b"archive"), batch, tmp_path) == (folder, [])
