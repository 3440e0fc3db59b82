"""Archives in S3, against a server that speaks it and against the vendor's own way of signing."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from itertools import product
from unittest.mock import patch

import botocore.session
import httpx
import pytest
from botocore.config import Config

from orchestrator.archives.object_store import ObjectStore
from orchestrator.archives.presigned import Bucket, presigned, signed
from tests.manual_clock import ManualClock
from tests.s3_server import Server
from tests.unit.archives.conftest import Yard

NOW = datetime(2013, 5, 24, tzinfo=UTC)


def test_the_signature_is_that_of_amazons_own_example() -> None:
    url = signed(
        "GET",
        "https",
        "examplebucket.s3.amazonaws.com",
        "/test.txt",
        "us-east-1",
        "AKIAIOSFODNN7EXAMPLE",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        now=NOW,
        expires_s=86400,
    )
    assert url.endswith("X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")


def test_addresses_are_those_that_the_vendors_library_makes() -> None:
    bucket = Bucket("http://127.0.0.1:9000", "my-bucket", "eu-central-1", "AKIDEXAMPLE", "secret/+=", "")
    session = botocore.session.Session()
    session.set_credentials(bucket.key_id, bucket.secret)
    addressing = Config(signature_version="s3v4", s3={"addressing_style": "path"})
    client = session.create_client("s3", region_name=bucket.region, endpoint_url=bucket.endpoint, config=addressing)
    for method, key in product(("PUT", "GET", "DELETE"), ("benchyard/r-1/result.tar.gz", "a b/ü+&=?#/%2F~*'().gz")):
        with patch("botocore.auth.get_current_datetime", return_value=NOW.replace(tzinfo=None)):
            theirs = client.generate_presigned_url(
                f"{method.lower()}_object", {"Bucket": bucket.name, "Key": key}, ExpiresIn=600
            )
        ours = presigned(bucket, method, key, now=NOW, expires_s=600)
        assert httpx.URL(ours).raw_path.partition(b"?")[0] == httpx.URL(theirs).raw_path.partition(b"?")[0]
        assert dict(httpx.URL(ours).params) == dict(httpx.URL(theirs).params)


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
    store = ObjectStore(Bucket(server.url, "archives", "us-east-1", "id", "secret", "by/"), clock)
    keeper = yard.keeper(store, days=1)
    await keeper.round()
    row = await yard.row(run_id)
    assert (row.state, row.place, row.tries) == ("built", "disk", 1)
    assert "does not answer" in (row.error or "")
    assert keeper.address(row) is None
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
    address = keeper.address(row)
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
    await store.close()


@pytest.mark.anyio
async def test_a_refusal_is_told_in_the_stores_own_words(server: Server, clock: ManualClock) -> None:
    server.start()
    store = ObjectStore(Bucket(server.url, "no-such-bucket", "us-east-1", "id", "secret"), clock)
    with pytest.raises(Exception, match="404: The specified bucket does not exist"):
        await store.put("r", "result.tar.gz", pieces(b"x"))
    await store.delete("r", "result.tar.gz")
    await store.close()


@pytest.mark.anyio
async def test_what_is_large_goes_in_parts_and_half_an_upload_leaves_nothing(server: Server, clock: ManualClock) -> None:
    server.start()
    bucket = Bucket(server.url, "archives", "us-east-1", "id", "secret", "large & <odd>/")
    store = ObjectStore(bucket, clock, part_bytes=5 << 20)
    content = os.urandom(10 << 20) + b"end"

    async def broken() -> AsyncIterator[bytes]:
        yield content
        raise RuntimeError("the database went away")

    with pytest.raises(RuntimeError):
        await store.put("r", "result.tar.gz", broken())
    unfinished = httpx.get(presigned(bucket, "GET", "", now=clock.now(), expires_s=60, query={"uploads": ""}))
    assert unfinished.status_code == 200
    assert "<UploadId>" not in unfinished.text
    await store.put("r", "result.tar.gz", pieces(content))
    async with httpx.AsyncClient() as client:
        assert (await client.get(store.address("r", "result.tar.gz"))).content == content
    assert [(each.key, each.size_bytes) async for each in store.each()] == [("large & <odd>/r/result.tar.gz", len(content))]
    assert len(await store.delete_all()) == 1
    assert [each async for each in store.each()] == []
    await store.close()


@pytest.mark.anyio
async def test_the_archive_of_a_batch_is_there_once_it_is_over_and_again_after_a_retry(
    yard: Yard, server: Server, clock: ManualClock
) -> None:
    # Given a batch of two runs, one of them not over, and a store that is down
    server.stop()
    batch_id = await yard.batch()
    first = await yard.ended_run(batch_id=batch_id, batch_slot=0)
    second = await yard.ended_run(batch_id=batch_id, batch_slot=1, status="running")
    store = ObjectStore(Bucket(server.url, "archives", "us-east-1", "id", "secret", "by/"), clock)
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
    assert [each async for each in store.each() if batch_id in each.key] == []
    await store.close()
