"""Addresses of objects in S3 that carry their own permission for a while (AWS Signature Version 4, query form). Pure."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, urlsplit

ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class Bucket:
    """Where objects lie, and with which key. The bucket's name is part of the path, which every such server understands."""

    endpoint: str
    name: str
    region: str
    key_id: str
    secret: str
    prefix: str = ""

    def key(self, folder: str, filename: str) -> str:
        return f"{self.prefix}{folder}/{filename}"


def presigned(
    bucket: Bucket, method: str, key: str, *, now: datetime, expires_s: int, query: Mapping[str, str] | None = None
) -> str:
    """The address with which anybody may do this one thing until it expires. Without a key: the bucket's own."""
    parts = urlsplit(bucket.endpoint.rstrip("/"))
    path = f"{parts.path}/{quote(bucket.name, safe='')}"
    if key:
        path += f"/{quote(key, safe='/-_.~')}"
    return signed(
        method,
        parts.scheme,
        parts.netloc,
        path,
        bucket.region,
        bucket.key_id,
        bucket.secret,
        now=now,
        expires_s=expires_s,
        extra=query,
    )


def signed(
    method: str,
    scheme: str,
    host: str,
    path: str,
    region: str,
    key_id: str,
    secret: str,
    *,
    now: datetime,
    expires_s: int,
    extra: Mapping[str, str] | None = None,
) -> str:
    day, time = now.strftime("%Y%m%d"), now.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{day}/{region}/s3/aws4_request"
    fields = {
        **(extra or {}),
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": f"{key_id}/{scope}",
        "X-Amz-Date": time,
        "X-Amz-Expires": str(expires_s),
        "X-Amz-SignedHeaders": "host",
    }
    query = "&".join(f"{name}={quote(value, safe='-_.~')}" for name, value in sorted(fields.items()))
    request = "\n".join((method, path, query, f"host:{host}", "", "host", "UNSIGNED-PAYLOAD"))
    to_sign = "\n".join((ALGORITHM, time, scope, hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{secret}".encode()
    for word in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, word.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    return f"{scheme}://{host}{path}?{query}&X-Amz-Signature={signature}"
