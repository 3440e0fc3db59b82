"""Archives in object stores, against a server that speaks S3 and against the vendor's own way of signing."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import tarfile
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import botocore.session
import httpx
import pytest
from botocore.config import Config
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from pydantic import SecretStr

from orchestrator.archives.object_store import ObjectStore, StoreError, open_store
from orchestrator.settings import Settings
from orchestrator.startup import BadConfiguration
from tests.manual_clock import ManualClock
from tests.s3_server import Server
from tests.service.archives.conftest import Yard


def open_s3(url: str, prefix: str = "by/", bucket: str = "archives", **options: Any) -> ObjectStore:
    keys = {"s3_access_key_id": "id", "s3_secret_access_key": SecretStr("secret")}
    settings = Settings(s3_bucket=bucket, s3_endpoint=url, s3_prefix=prefix, **keys)
    store = open_store(settings, **{"retries": 0, **options})
    assert store is not None
    return store


@pytest.mark.anyio
async def test_addresses_are_those_that_the_vendors_library_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-somebody-else")
    key_id, secret, url = "AKIDEXAMPLE", "secret/+=", "http://127.0.0.1:9000"
    session = botocore.session.Session()
    session.set_credentials(key_id, secret)
    addressing = Config(signature_version="s3v4", s3={"addressing_style": "path"})
    client = session.create_client("s3", region_name="eu-central-1", endpoint_url=url, config=addressing)
    keys = {"s3_access_key_id": key_id, "s3_secret_access_key": SecretStr(secret), "s3_region": "eu-central-1"}
    for prefix in ("benchyard/", "a b/ü+&=?#/%2F~*'()"):
        store = open_store(Settings(s3_bucket="my-bucket", s3_endpoint=url, s3_prefix=prefix, **keys))
        assert store is not None
        ours = httpx.URL(await store.signed_url("r-1", "result.tar.gz"))
        signed_at = datetime.strptime(ours.params["X-Amz-Date"], "%Y%m%dT%H%M%SZ")
        with patch("botocore.auth.get_current_datetime", return_value=signed_at):
            theirs = httpx.URL(
                client.generate_presigned_url(
                    "get_object", {"Bucket": "my-bucket", "Key": f"{prefix}r-1/result.tar.gz"}, ExpiresIn=3600
                )
            )
        assert ours.raw_path.partition(b"?")[0] == theirs.raw_path.partition(b"?")[0]
        assert dict(ours.params) == dict(theirs.params)


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), 1 << 20):
        yield content[start : start + (1 << 20)]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    it = Server()
    yield it
    it.stop()


@pytest.mark.anyio
async def test_while_the_store_is_down_nothing_is_lost_and_later_it_is_there(
    yard: Yard, server: Server, clock: ManualClock
) -> None:
    # Given an ended run, and a store that does not answer
    server.stop()
    run_id = await yard.ended_run()
    store = open_s3(server.url)
    keeper = yard.keeper(store, days=1)
    await keeper.round()
    row = await yard.row(run_id)
    assert (row.state, row.place, row.tries) == ("built", "disk", 1)
    assert "does not answer" in (row.error or "")
    assert await keeper.address(row) is None
    assert keeper.path(row).exists()
    # When it is back, and the time for another try has come
    server.start()
    await keeper.round()
    assert (await yard.row(run_id)).state == "built"
    clock.advance(10)
    await keeper.round()
    # Then it is there, and only there
    row = await yard.row(run_id)
    assert (row.state, row.place, row.error) == ("stored", "s3", None)
    assert not keeper.path(row).exists()
    address = await keeper.address(row)
    assert address is not None
    assert "/archives/by/" in address
    async with httpx.AsyncClient() as client:
        fetched = await client.get(address)
        assert hashlib.sha256(fetched.content).hexdigest() == row.sha256
        # And once it was kept long enough, it is removed there
        clock.advance(2 * 24 * 3600)
        await yard.leadership.hold()
        await keeper.round()
        assert (await yard.row(run_id)).state == "expired"
        assert (await client.get(address)).status_code == 404


@pytest.mark.anyio
async def test_a_refusal_is_told_in_the_stores_own_words(server: Server) -> None:
    server.start()
    store = open_s3(server.url, bucket="no-such-bucket")
    with pytest.raises(Exception, match="404: The specified bucket does not exist"):
        await store.put("r", "result.tar.gz", pieces(b"x"))
    await store.delete("r", "result.tar.gz")


@pytest.mark.anyio
async def test_what_is_large_goes_in_parts_and_half_an_upload_leaves_nothing(server: Server) -> None:
    server.start()
    store = open_s3(server.url, "large & <odd>/", part_bytes=5 << 20)
    content = os.urandom(10 << 20) + b"end"

    async def broken() -> AsyncIterator[bytes]:
        yield content
        raise RuntimeError("the database went away")

    with pytest.raises(RuntimeError):
        await store.put("r", "result.tar.gz", broken())
    unfinished = httpx.get(f"{server.url}/archives?uploads")
    assert unfinished.status_code == 200
    assert "<UploadId>" not in unfinished.text
    await store.put("r", "result.tar.gz", pieces(content))
    async with httpx.AsyncClient() as client:
        assert (await client.get(await store.signed_url("r", "result.tar.gz"))).content == content
    assert [(each.key, each.size_bytes) for each in await store.list()] == [("large & <odd>/r/result.tar.gz", len(content))]
    assert len(await store.delete_all()) == 1
    assert await store.list() == []


@pytest.mark.anyio
async def test_the_archive_of_a_batch_is_there_once_it_is_over_and_again_after_a_retry(
    yard: Yard, server: Server, clock: ManualClock
) -> None:
    # Given a batch of two runs, one of them not over, and a store that is down
    server.stop()
    batch_id = await yard.batch()
    first = await yard.ended_run(batch_id=batch_id, batch_slot=0)
    second = await yard.ended_run(batch_id=batch_id, batch_slot=1, status="running")
    store = open_s3(server.url)
    keeper, batches = yard.keeper(), yard.batch_keeper(store)
    await keeper.round()
    assert await batches.round() is False, "it is not over"
    await yard.set_status(second, "failed")
    # When it is over, then it is tried, and tried again
    assert await batches.round() is True
    assert await batches.address(batch_id, 2) is None
    server.start()
    assert await batches.round() is False, "not yet"
    clock.advance(10)
    await batches.round()
    address = await batches.address(batch_id, 2)
    assert address is not None
    async with httpx.AsyncClient() as client:
        with tarfile.open(fileobj=io.BytesIO((await client.get(address)).content)) as tar:
            names = tar.getnames()
    assert names[0] == "batch.json"
    assert {name.partition("/")[0] for name in names[1:]} == {f"basic-{first}", f"basic-{second}"}
    assert await batches.round() is False
    # And when a member is taken up again, the old one is not given out, and a new one is made
    third = await yard.retry(second)
    assert await batches.address(batch_id, 3) is None
    assert await batches.round() is False
    await yard.set_status(third, "completed")
    await batches.round()
    assert await batches.address(batch_id, 3) is not None
    # And once it was kept long enough, it is removed there
    clock.advance(2 * 24 * 3600)
    await yard.leadership.hold()
    await yard.batch_keeper(store, days=1).round()
    assert await batches.address(batch_id, 3) is None
    assert [each for each in await store.list() if batch_id in each.key] == []


@pytest.mark.anyio
async def test_a_prefix_need_not_end_at_a_slash(server: Server) -> None:
    server.start()
    store, neighbour = open_s3(server.url, "team/by-"), open_s3(server.url, "team/other-")
    for each in (store, neighbour):
        await each.put("r", "result.tar.gz", pieces(b"x"))
    assert [each.key for each in await store.delete_all()] == ["team/by-r/result.tar.gz"]
    assert [each.key for each in await neighbour.delete_all()] == ["team/other-r/result.tar.gz"]


@pytest.mark.anyio
async def test_google_by_the_requests_that_it_shares_with_s3(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a service account's key in the environment, which says where the service is
    server.start()
    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {"type": "service_account", "private_key": key.decode(), "private_key_id": "1", "client_email": "a@b.example"}
    (tmp_path / "key.json").write_text(json.dumps({**account, "gcs_base_url": server.url}))
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(tmp_path / "key.json"))
    store = open_store(Settings(archive_store="gs://archives/google"), retries=0, part_bytes=5 << 20)
    assert store is not None
    # Then objects are stored, in parts as well, signed for, listed and removed
    content = os.urandom(6 << 20)
    await store.put("r", "result.tar.gz", pieces(content))
    url = await store.signed_url("r", "result.tar.gz")
    assert httpx.URL(url).params["X-Goog-Credential"].startswith("a@b.example/")
    assert httpx.get(url).content == content
    assert (store.url, [each.key for each in await store.list()]) == ("gs://archives/google/", ["google/r/result.tar.gz"])
    await store.delete("r", "result.tar.gz")
    assert await store.delete_all() == []


KEYS: dict[str, Any] = {"s3_access_key_id": "id", "s3_secret_access_key": SecretStr("secret")}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"s3_bucket": "b"}, "BENCHYARD_S3_BUCKET needs"),
        ({"archive_store": "s3://bucket"}, "BENCHYARD_ARCHIVE_STORE needs"),
        ({"archive_store": "gs://bucket", "s3_bucket": "b", **KEYS}, "set one of them"),
        ({"s3_bucket": "b", "s3_prefix": "/lead/", **KEYS}, "BENCHYARD_S3_PREFIX must not begin with '/'"),
        ({"archive_store": "s3://bucket/a//b", **KEYS}, "BENCHYARD_ARCHIVE_STORE must not"),
        ({"archive_store": "az://container"}, "BENCHYARD_ARCHIVE_STORE: .*[Aa]ccount"),
    ],
    ids=str,
)
def test_a_store_that_is_not_fully_described_is_one_sentence(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BadConfiguration, match=message):
        open_store(Settings(**settings))


@pytest.mark.anyio
async def test_the_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answered = [], asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readline()).decode().split()[:2])
        writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()
        await writer.wait_closed()
        answered.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
        with pytest.raises(StoreError, match="does not answer"):
            await open_s3("https://store.example").delete("r", "result.tar.gz")
        await answered.wait()
    assert asked == [["CONNECT", "store.example:443"]]
