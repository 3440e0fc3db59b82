"""Encrypts secrets that must be readable again, such as a caller's provider key, with a key outside the database.

Only this module imports `cryptography`. There may be several master keys: the first encrypts, all decrypt, so keys can be
rotated without downtime. A sealed secret is bound to its place: copied into another row it cannot be opened.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from orchestrator.startup import BadConfiguration

KEY_FILE = "master_key"
KEY_BYTES = 32
NONCE_BYTES = 12
VERSION = "v1"
HOW = "32 random bytes in base64, for example from `openssl rand -base64 32`; several with commas, the newest first"


class BadMasterKey(BadConfiguration):
    """The given master key is not valid."""


class CannotOpen(Exception):
    """The secret was sealed with an unknown master key or for another place, or was modified."""


class Vault:
    """`keys`: the first seals, all open. `entropy` returns random bytes."""

    def __init__(self, keys: Sequence[bytes], entropy: Callable[[int], bytes] = os.urandom) -> None:
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            raise BadMasterKey(f"the master key must be {HOW}")
        self._ciphers = {_name(key): AESGCM(key) for key in reversed(keys)}
        self._first = _name(keys[0])
        self._entropy = entropy

    def seal(self, secret: str, purpose: str) -> str:
        nonce = self._entropy(NONCE_BYTES)
        closed = self._ciphers[self._first].encrypt(nonce, secret.encode(), purpose.encode())
        return f"{VERSION}.{self._first}.{base64.urlsafe_b64encode(nonce + closed).decode()}"

    def open(self, sealed: str, purpose: str) -> str:
        """The secret that was sealed for this place. Raises `CannotOpen`, which reveals nothing about the secret."""
        version, _, rest = sealed.partition(".")
        name, _, body = rest.partition(".")
        cipher = self._ciphers.get(name)
        if version != VERSION or cipher is None:
            raise CannotOpen(
                f"it was sealed with master key {name[:8]!r}, which is not configured here; add it to BENCHYARD_MASTER_KEY"
            )
        try:
            raw = base64.urlsafe_b64decode(body)
            return cipher.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], purpose.encode()).decode()
        except (InvalidTag, ValueError, binascii.Error):
            raise CannotOpen("it was changed in the database, or belongs to another row; enter it again") from None

    def is_current(self, sealed: str) -> bool:
        """Whether it was sealed with the first key."""
        return sealed.startswith(f"{VERSION}.{self._first}.")


def read_keys(text: str) -> list[bytes]:
    """Parses master keys: base64, separated by commas or line breaks."""
    keys = []
    for part in filter(None, re.split(r"[\s,]+", text)):
        try:
            key = base64.b64decode(part.replace("-", "+").replace("_", "/") + "=" * (-len(part) % 4), validate=True)
        except (ValueError, binascii.Error):
            key = b""
        if len(key) != KEY_BYTES:
            raise BadMasterKey(f"the master key must be {HOW}")
        keys.append(key)
    return keys


def load_vault(configured: str | None, file: Path | None, data_dir: Path) -> Vault:
    """Uses the configured keys, otherwise the key in the data directory, which is created at the first start."""
    if configured:
        return Vault(read_keys(configured))
    if file is not None:
        return Vault(read_keys(_text(file)))
    path = data_dir / KEY_FILE
    try:
        fresh = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return Vault(read_keys(_text(path)))
    except OSError as error:
        raise BadMasterKey(f"The master key {path} cannot be written: {error.strerror}.") from error
    with os.fdopen(fresh, "w") as key_file:
        key_file.write(base64.b64encode(os.urandom(KEY_BYTES)).decode() + "\n")
        key_file.flush()
        os.fsync(key_file.fileno())
    return Vault(read_keys(path.read_text()))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise BadMasterKey(f"The master key in {path} cannot be read: {why}. It must be {HOW}.") from error


def _name(key: bytes) -> str:
    """An identifier of the key that reveals nothing about it."""
    return hashlib.sha256(b"benchyard master key " + key).hexdigest()[:8]
