"""Identifiers: time-ordered UUIDs (version 7) and random tokens."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import uuid
from datetime import datetime


def uuid7(now: datetime, entropy: bytes | None = None) -> str:
    """A UUID that sorts by time; `entropy` (10 bytes) is for tests."""
    milliseconds = int(now.timestamp() * 1000)
    tail = bytearray((milliseconds & (1 << 48) - 1).to_bytes(6, "big") + (entropy or os.urandom(10)))
    tail[6] = 0x70 | tail[6] & 0x0F
    tail[8] = 0x80 | tail[8] & 0x3F
    return str(uuid.UUID(bytes=bytes(tail)))


def new_token() -> str:
    """256 random bits, safe in a URL."""
    return secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def same_token(left: str, right: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(left.encode(), right.encode())
