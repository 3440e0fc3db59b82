"""Request and response bodies of alerts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StrictBool, StrictInt

from orchestrator.alerts.tables import Alert, Webhook, WebhookDelivery
from orchestrator.http.schemas import Answer, Body, Text


class AlertOut(Answer):
    id: int
    uid: str
    model_id: int | None = Field(description="Null where a run failed that asks no model.")
    kind: str
    run_id: str | None
    title: str
    data: dict[str, Any]
    at: datetime

    @classmethod
    def of(cls, row: Alert) -> Self:
        return cls(**{name: getattr(row, name) for name in cls.model_fields})


def _web_address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("give an address that starts with http:// or https://")
    if parts.port == 0:  # `port` itself raises an error if it is too large or not a number
        raise ValueError("port 0 is not an address")
    if parts.username or parts.password:
        raise ValueError("the address must not contain a name or password")
    return url


EVERY_FAILED_RUN = "Send `run.failed` for every run that fails, not only for scheduled ones."


class WebhookCreate(Body):
    url: Annotated[Text, Field(max_length=2000), AfterValidator(_web_address)]
    model_id: Annotated[StrictInt | Text, Field(description="Only alerts of this model.")] | None = None
    every_failed_run: Annotated[StrictBool, Field(description=EVERY_FAILED_RUN)] = False


class WebhookChange(Body):
    every_failed_run: Annotated[StrictBool, Field(description=EVERY_FAILED_RUN)]


class SecretChange(Body):
    keep_old_s: Annotated[
        StrictInt, Field(ge=0, le=7 * 24 * 3600, description="How long the old secret signs beside the new one.")
    ] = 24 * 3600


class WebhookOut(Answer):
    id: int
    url: str
    model_id: int | None
    every_failed_run: bool = Field(description=EVERY_FAILED_RUN)
    created_at: datetime
    old_secret_until: datetime | None = Field(description="Until then the secret before signs too.")
    deliveries: dict[str, int]

    @classmethod
    def of(cls, row: Webhook, deliveries: dict[str, int], now: datetime) -> Self:
        until = row.previous_until if row.previous_until and row.previous_until > now else None
        values = {name: getattr(row, name) for name in ("id", "url", "model_id", "every_failed_run", "created_at")}
        return cls(**values, old_secret_until=until, deliveries=deliveries)


class WebhookCreated(WebhookOut):
    secret: str = Field(description="Signs the deliveries; it is shown only now.")


class WebhookTried(Answer):
    """The result of a test message."""

    delivered: bool
    status: int | None = Field(description="What the address answered, if it did.")
    error: str | None


class Retried(Answer):
    retried: int


class DeliveryOut(Answer):
    alert_id: int
    uid: str
    kind: str
    title: str
    state: str
    tries: int
    not_before: datetime
    last_error: str | None
    delivered_at: datetime | None

    @classmethod
    def of(cls, row: WebhookDelivery, alert: Alert) -> Self:
        fields = ("uid", "kind", "title")
        values = {name: getattr(row, name) for name in cls.model_fields if name not in fields}
        return cls(**values, **{name: getattr(alert, name) for name in fields})


class Badge(Answer):
    """What shields.io calls an endpoint badge."""

    schemaVersion: int = 1  # noqa: N815
    label: str
    message: str
    color: str
