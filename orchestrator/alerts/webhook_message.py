"""What is sent to a webhook, signed as Standard Webhooks asks (standardwebhooks.com). Pure."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import datetime

from orchestrator.alerts.tables import Alert, Webhook

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret(entropy: bytes) -> str:
    """A signing secret from random bytes."""
    return PREFIX + base64.b64encode(entropy).decode()


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def secrets_of(webhook: Webhook, now: datetime) -> list[str]:
    """What signs for it now: its secret, and the one before for as long as it was promised."""
    if webhook.previous_secret and webhook.previous_until and now < webhook.previous_until:
        return [webhook.secret, webhook.previous_secret]
    return [webhook.secret]


def message(alert: Alert, secrets: list[str], now: datetime) -> tuple[bytes, dict[str, str]]:
    """Body and headers. The id stays the same over all tries: receivers deduplicate by it."""
    content = {
        "type": alert.kind,
        "timestamp": alert.at.isoformat(),
        "data": {**alert.data, "title": alert.title, "alert_id": alert.id, "model_id": alert.model_id},
    }
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    timestamp = int(now.timestamp())
    headers = {
        "content-type": "application/json",
        "user-agent": "benchyard",
        "webhook-id": alert.uid,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(sign(secret, alert.uid, timestamp, body) for secret in secrets),
    }
    return body, headers
