"""Archives in an object store: S3, Google Cloud Storage or Azure Blob Storage. Only this module imports obstore.

It uses obstore's synchronous interface on threads. An object larger than one part is uploaded in parts, so a stream of
unknown length needs neither disk space nor much memory; an object is stored completely or not at all. obstore honours
`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY` and `SSL_CERT_FILE`. It is imported when a store is opened or used: most
installations have none.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import re
from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from orchestrator.settings import Settings
from orchestrator.startup import BadConfiguration

if TYPE_CHECKING:
    from obstore.store import AzureStore, ClientConfig, GCSStore, RetryConfig, S3Credential, S3Store

T = TypeVar("T")

PART_BYTES = 32 << 20
"""S3 accepts 10,000 parts, which allows 312 GiB per object."""
RETRIES = 3
URL_VALID = timedelta(hours=1)
CLIENT: ClientConfig = {"allow_http": True, "connect_timeout": timedelta(seconds=10), "timeout": timedelta(minutes=5)}


class StoreError(Exception):
    """A request to the object store failed; try again later."""


@dataclass(frozen=True)
class Stored:
    key: str
    size_bytes: int


def batch_folder(batch_id: str) -> str:
    return f"batches/{batch_id}"


class ObjectStore:
    def __init__(
        self,
        client: S3Store | GCSStore | AzureStore,
        scheme: str,
        bucket: str,
        prefix: str,
        *,
        part_bytes: int = PART_BYTES,
    ) -> None:
        self._client, self.scheme, self._prefix, self._part_bytes = client, scheme, prefix, part_bytes
        self.url = f"{scheme}://{bucket}/{prefix}"

    async def put(self, folder: str, filename: str, pieces: AsyncIterable[bytes]) -> None:
        """Stores all of `pieces` as one object, replacing one of the same name."""
        import obstore

        writer = obstore.open_writer(
            self._client,
            self._key(folder, filename),
            attributes={"Content-Type": "application/gzip"},
            buffer_size=self._part_bytes,
            max_concurrency=1,
        )
        try:
            async for piece in pieces:
                await _on_thread(lambda piece=piece: writer.write(piece))  # type: ignore[misc]
            await _on_thread(writer.close)
        except BaseException as error:
            failure = (type(error), error, error.__traceback__)
            with contextlib.suppress(StoreError):
                await _on_thread(lambda: writer.__exit__(*failure))  # aborts an upload that is still open
            raise

    async def delete(self, folder: str, filename: str) -> None:
        """Deleting an object that does not exist is not an error."""
        await _on_thread(lambda: self._delete(self._key(folder, filename)))

    async def delete_all(self) -> list[Stored]:
        """Deletes everything under our prefix and returns what there was."""
        objects = await self.list()
        for stored in objects:
            await _on_thread(lambda key=stored.key: self._delete(key))  # type: ignore[misc]
        return objects

    async def list(self) -> list[Stored]:
        """Everything under our prefix. A prefix need not end at a slash, but the library lists whole folders."""
        import obstore

        folder = self._prefix.rpartition("/")[0]
        pages = await _on_thread(lambda: [*obstore.list(self._client, folder or None)])
        objects = [Stored(entry["path"], entry["size"]) for page in pages for entry in page]
        return [stored for stored in objects if stored.key.startswith(self._prefix)]

    async def signed_url(self, folder: str, filename: str) -> str:
        """A download URL that is valid for an hour. Google is asked to sign it if our credentials hold no private key."""
        import obstore

        return await _on_thread(lambda: obstore.sign(self._client, "GET", self._key(folder, filename), URL_VALID))

    def _key(self, folder: str, filename: str) -> str:
        return f"{self._prefix}{folder}/{filename}"

    def _delete(self, key: str) -> None:
        import obstore

        with contextlib.suppress(FileNotFoundError):
            obstore.delete(self._client, key)


def open_store(settings: Settings, *, retries: int = RETRIES, part_bytes: int = PART_BYTES) -> ObjectStore | None:
    """Opens the configured store, or returns None. Sends no request yet."""
    if settings.archive_store is not None:
        variable, url = "BENCHYARD_ARCHIVE_STORE", urlsplit(settings.archive_store)
        scheme, bucket, path = url.scheme, url.netloc, url.path.strip("/")
        prefix = f"{path}/" if path else "benchyard/"
        if settings.s3_bucket is not None:
            raise BadConfiguration("BENCHYARD_ARCHIVE_STORE and BENCHYARD_S3_BUCKET both name a store; set one of them")
    elif settings.s3_bucket is not None:
        variable, scheme, bucket, prefix = "BENCHYARD_S3_PREFIX", "s3", settings.s3_bucket, settings.s3_prefix
    else:
        return None
    from obstore.exceptions import BaseError
    from obstore.store import AzureStore, GCSStore

    if any(segment in ("", ".", "..") for segment in prefix.split("/")[:-1]):
        raise BadConfiguration(f"{variable} must not begin with '/' nor hold '//', '.' or '..' as a folder")
    retry: RetryConfig = {
        "max_retries": retries,
        "retry_timeout": timedelta(minutes=1),
        "backoff": {"init_backoff": timedelta(seconds=0.25), "max_backoff": timedelta(seconds=4), "base": 2},
    }
    try:
        client: S3Store | GCSStore | AzureStore
        if scheme == "gs":
            client = GCSStore(bucket, client_options=CLIENT, retry_config=retry)
        elif scheme == "az":
            client = AzureStore(bucket, client_options=CLIENT, retry_config=retry)
        else:
            client = _s3(settings, bucket, retry)
    except BaseError as error:
        raise BadConfiguration(f"BENCHYARD_ARCHIVE_STORE: {_first_line(error)}") from error
    return ObjectStore(client, scheme, bucket, prefix, part_bytes=part_bytes)


def _s3(settings: Settings, bucket: str, retry: RetryConfig) -> S3Store:
    from obstore.store import S3Store

    key_id, secret = settings.s3_access_key_id, settings.s3_secret_access_key
    if key_id is None or secret is None:
        raise BadConfiguration(
            f"{'BENCHYARD_S3_BUCKET' if settings.s3_bucket else 'BENCHYARD_ARCHIVE_STORE'} "
            "needs BENCHYARD_S3_ACCESS_KEY_ID and BENCHYARD_S3_SECRET_ACCESS_KEY as well"
        )

    def credentials() -> S3Credential:
        """A provider instead of options, because obstore would combine those with AWS_SESSION_TOKEN from the environment."""
        return {"access_key_id": key_id, "secret_access_key": secret.get_secret_value(), "expires_at": None}

    return S3Store(
        bucket,
        endpoint=(settings.s3_endpoint or f"https://s3.{settings.s3_region}.amazonaws.com").rstrip("/"),
        region=settings.s3_region,
        virtual_hosted_style_request=False,  # the bucket in the path: every compatible server supports it
        disable_bulk_delete=True,  # not every compatible server supports it
        credential_provider=credentials,
        client_options=CLIENT,
        retry_config=retry,
    )


async def _on_thread(call: Callable[[], T]) -> T:
    """Runs a blocking call on a thread. Waits for it even if this task is cancelled, so that two calls never overlap."""
    from obstore.exceptions import BaseError

    future = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait({future})
        raise
    except (BaseError, OSError) as error:  # writers raise OSError
        raise StoreError(_sentence(error)) from None


def _sentence(error: Exception) -> str:
    """obstore has few error types: only the text says whether there was a response, and which."""
    text = str(error)
    if status := re.search(r"status code: (\d{3})", text):
        message = re.search(r"<Message>([^<\n]*)", text)
        return f"the object store answered {status[1]}" + (f": {html.unescape(message[1])[:300]}" if message else "")
    if "HTTP error" in text:
        return f"the object store does not answer ({_first_line(error)})"
    return f"the object store cannot be used ({_first_line(error)})"


def _first_line(error: Exception) -> str:
    """The rest is a dump of the library's internal objects."""
    return str(error).partition("\n")[0].strip()[:300]
