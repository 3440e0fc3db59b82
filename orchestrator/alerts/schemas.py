"""Request and response bodies of alerts."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, StrictBool, StrictInt, model_validator

from orchestrator.alerts.sending.messages import MessageFormat
from orchestrator.alerts.tables import Alert, AlertMute, Webhook, WebhookDelivery
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
    muted: bool = Field(description="It was sent to nobody, because alerts of the model were muted.")
    acknowledged_at: datetime | None
    acknowledged_by: str | None

    @classmethod
    def of(cls, row: Alert) -> Self:
        return cls(**{name: getattr(row, name) for name in cls.model_fields})


class FlipOut(Answer):
    """A problem whose share of passes crossed one half."""

    benchmark: str
    problem_id: str
    before: float = Field(description="Share of passes in the baseline.")
    now: float = Field(description="Share of passes in the newest runs.")
    direction: Literal["broken", "fixed"]
    position: int | None = Field(description="Its item in the run of the alert.")
    last_good_position: int | None = Field(description="Its item in the last good run.")


class AlertDetail(AlertOut):
    """An alert and what changed."""

    model: str | None
    has_schedule: bool
    last_good_run_id: str | None = Field(description="The newest earlier run of the same panel with another verdict.")
    flipped: list[FlipOut]


def _web_address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("give an address that starts with http:// or https://")
    if parts.port == 0:  # `port` itself raises an error if it is too large or not a number
        raise ValueError("port 0 is not an address")
    if parts.username or parts.password:
        raise ValueError("the address must not contain a name or password")
    return url


_MAIL = re.compile(r"(?:mailto:)?([^\s@:<>,;]{1,64}@[A-Za-z0-9.-]{1,250})")


def _mail_address(url: str) -> str:
    match = _MAIL.fullmatch(url)
    if match is None:
        raise ValueError("give one e-mail address, for example mailto:team@example.org")
    return f"mailto:{match[1]}"


EVERY_FAILED_RUN = "Send `run.failed` for every run that fails, not only for scheduled ones."


class MuteChange(Body):
    hours: Annotated[StrictInt, Field(ge=1, le=24 * 90, description="How long nothing is sent.")] = 24


class MuteOut(Answer):
    """Until then alerts of this model are stored but sent to nobody."""

    model_id: int
    until: datetime
    muted_by: str

    @classmethod
    def of(cls, row: AlertMute) -> Self:
        return cls(model_id=row.model_id, until=row.until, muted_by=row.muted_by)


class WebhookCreate(Body):
    url: Annotated[Text, Field(max_length=2000, description="Or, for e-mail, mailto:team@example.org.")]
    format: Annotated[MessageFormat, Field(description="The form of the messages.")] = MessageFormat.STANDARD
    model_id: Annotated[StrictInt | Text, Field(description="Only alerts of this model.")] | None = None
    every_failed_run: Annotated[StrictBool, Field(description=EVERY_FAILED_RUN)] = False

    @model_validator(mode="after")
    def _address_fits(self) -> Self:
        if self.format is MessageFormat.EMAIL:
            self.url = _mail_address(self.url)
        else:
            _web_address(self.url)
        return self


class WebhookChange(Body):
    every_failed_run: Annotated[StrictBool, Field(description=EVERY_FAILED_RUN)]


class SecretChange(Body):
    keep_old_s: Annotated[
        StrictInt, Field(ge=0, le=7 * 24 * 3600, description="How long the old secret signs beside the new one.")
    ] = 24 * 3600


class WebhookOut(Answer):
    id: int
    url: str
    format: MessageFormat
    model_id: int | None
    every_failed_run: bool = Field(description=EVERY_FAILED_RUN)
    created_at: datetime
    old_secret_until: datetime | None = Field(description="Until then the secret before signs too.")
    deliveries: dict[str, int]

    @classmethod
    def of(cls, row: Webhook, deliveries: dict[str, int], now: datetime) -> Self:
        until = row.previous_until if row.previous_until and row.previous_until > now else None
        values = {name: getattr(row, name) for name in ("id", "url", "format", "model_id", "every_failed_run", "created_at")}
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
