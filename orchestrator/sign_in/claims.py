"""Validates the claims of an id token. Pure: returns the identity or raises an error with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

SKEW_S = 60
"""The tolerated clock skew of the provider."""
SUBJECT_LENGTH = 255


class InvalidIdToken(Exception):
    """The id token is not for this client or this sign-in, or is not currently valid."""


@dataclass(frozen=True)
class Identity:
    issuer: str
    subject: str
    email: str
    name: str


def identity_of(
    claims: Mapping[str, Any], *, issuer: str, client_id: str, nonce: str | None, now: datetime, skew_s: int = SKEW_S
) -> Identity:
    """The validated identity. `nonce` is None for a refreshed token, since providers may leave it out then."""
    moment = now.timestamp()
    if claims.get("iss") != issuer:
        raise InvalidIdToken(f"it was issued by {_short(claims.get('iss'))} and not by {issuer}")
    _check_audience(claims, client_id)
    if _time(claims, "exp") <= moment - skew_s:
        raise InvalidIdToken("it has expired; the clocks of this machine and of the provider may differ")
    if _time(claims, "iat") > moment + skew_s:
        raise InvalidIdToken("it is from the future; the clocks of this machine and of the provider differ")
    if "nbf" in claims and _time(claims, "nbf") > moment + skew_s:
        raise InvalidIdToken("it is not valid yet; the clocks of this machine and of the provider differ")
    if nonce is not None and claims.get("nonce") != nonce:
        raise InvalidIdToken("it belongs to another sign-in (its nonce does not match)")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_LENGTH:
        raise InvalidIdToken("it names no user (sub)")
    # Members are added by e-mail address, so an address that the provider reports as unverified is ignored.
    email = "" if claims.get("email_verified") is False else _text(claims, "email", 320)
    return Identity(issuer, subject, email, _text(claims, "name", 200))


def _check_audience(claims: Mapping[str, Any], client_id: str) -> None:
    claim = claims.get("aud")
    audience = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
    if client_id not in audience:
        raise InvalidIdToken(f"it is for {_short(claim)} and not for this client, {client_id}")
    authorized = claims.get("azp")
    if (len(audience) > 1 or authorized is not None) and authorized != client_id:
        raise InvalidIdToken(f"it was given to another client, {_short(authorized)}")


def _time(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidIdToken(f"it has no time {name}")
    return float(value)


def _text(claims: Mapping[str, Any], name: str, length: int) -> str:
    value = claims.get(name)
    return "".join(char for char in value if char.isprintable())[:length] if isinstance(value, str) else ""


def _short(value: object) -> str:
    return repr(value)[:100]
