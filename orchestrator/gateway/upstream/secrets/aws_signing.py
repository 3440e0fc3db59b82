"""Signs requests to Amazon Web Services (SigV4). The only module that imports `botocore`, and of it only the signer."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

REGION = re.compile(r"bedrock(?:-runtime)?(?:-fips)?\.([a-z]{2}(?:-[a-z]+)+-\d)\b")
DEFAULT_REGION = "us-east-1"
SERVICE = "bedrock"
_PAIR = re.compile(r"(A[KS]IA[A-Z0-9]{12,124}):([A-Za-z0-9/+=]{16,128})(?::([A-Za-z0-9/+=_-]{16,8192}))?")


@dataclass(frozen=True)
class AccessKeys:
    """A pair of keys; temporary ones come with a session token."""

    key_id: str
    secret: str = field(repr=False)
    session: str = field(default="", repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(value for value in (self.secret, self.session, self.key_id) if value)


def access_keys(key: str) -> AccessKeys | None:
    """`ACCESS_KEY_ID:SECRET_ACCESS_KEY` or `...:SESSION_TOKEN`; None for any other key, such as an API key of Bedrock."""
    found = _PAIR.fullmatch(key)
    return AccessKeys(found[1], found[2], found[3] or "") if found else None


def region_of(url: str) -> str:
    found = REGION.search(url)
    return found[1] if found else DEFAULT_REGION


def signature_headers(keys: AccessKeys, method: str, url: str, content: bytes) -> dict[str, str]:
    """The headers that sign this request. Raises `RuntimeError` where botocore is not installed."""
    try:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials
    except ImportError as error:
        raise RuntimeError("signing with AWS access keys needs botocore: pip install 'benchyard[aws]'") from error
    request = AWSRequest(method=method, url=url, data=content)
    credentials = Credentials(keys.key_id, keys.secret, keys.session or None)
    SigV4Auth(credentials, SERVICE, region_of(url)).add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}
