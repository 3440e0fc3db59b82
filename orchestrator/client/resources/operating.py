"""The service itself: alerts, machines, tokens, keys, limits, the audit log."""

from __future__ import annotations

from typing import Unpack

from orchestrator.client import bodies, models
from orchestrator.client.flavours import F, Resource, Values, iteration, listing, operation
from orchestrator.client.requests import Items, Request, at, given
from orchestrator.client.steps import StreamEvent, follow


class Alerts(Resource[F]):
    @listing
    def list(
        self, *, model_id: int | None = None, kind: bodies.AlertKind | None = None, limit: int | None = None
    ) -> Request[Items[models.AlertOut]]:
        query = {"model_id": model_id, "kind": kind, "limit": limit}
        return Request("GET", at("alerts"), models.AlertOutPage, query)

    @operation
    def get(self, alert_id: str) -> Request[models.AlertDetail]:
        return Request("GET", at("alerts", alert_id), models.AlertDetail)


class Webhooks(Resource[F]):
    @listing
    def list(self) -> Request[Items[models.WebhookOut]]:
        return Request("GET", at("alerts", "webhooks"), models.WebhookOutPage)

    @operation
    def create(self, **fields: Unpack[bodies.WebhookCreate]) -> Request[models.WebhookCreated]:
        return Request("POST", at("alerts", "webhooks"), models.WebhookCreated, json=given(fields))

    @operation
    def get(self, webhook_id: str) -> Request[models.WebhookOut]:
        return Request("GET", at("alerts", "webhooks", webhook_id), models.WebhookOut)

    @operation
    def change(self, webhook_id: str, **fields: Unpack[bodies.WebhookChange]) -> Request[models.WebhookOut]:
        return Request("PATCH", at("alerts", "webhooks", webhook_id), models.WebhookOut, json=given(fields))

    @operation
    def delete(self, webhook_id: str) -> Request[None]:
        return Request("DELETE", at("alerts", "webhooks", webhook_id))

    @operation
    def test(self, webhook_id: str) -> Request[models.WebhookTried]:
        return Request("POST", at("alerts", "webhooks", webhook_id, "test"), models.WebhookTried)

    @listing
    def deliveries(
        self, webhook_id: str, *, state: str | None = None, limit: int | None = None
    ) -> Request[Items[models.DeliveryOut]]:
        query = {"state": state, "limit": limit}
        return Request("GET", at("alerts", "webhooks", webhook_id, "deliveries"), models.DeliveryOutPage, query)


class Service(Resource[F]):
    """Machines, events of all runs, and who did what."""

    @operation
    def fleet(self) -> Request[models.FleetOut]:
        return Request("GET", at("fleet"), models.FleetOut)

    @operation
    def agents(self) -> Request[models.AgentList]:
        return Request("GET", at("agents"), models.AgentList)

    @operation
    def account(self) -> Request[models.AccountOut]:
        """Who the token belongs to, and what it may do."""
        return Request("GET", at("account"), models.AccountOut)

    @listing
    def workspaces(self) -> Request[Items[models.OwnWorkspace]]:
        return Request("GET", at("workspaces"), models.OwnWorkspacePage)

    @operation
    def limits(self) -> Request[models.LimitsOut]:
        return Request("GET", at("limits"), models.LimitsOut)

    @iteration
    def events(self, *, after: str | None = None) -> Values[StreamEvent]:
        """Iterates over the events of all runs, from now on or after an event's id, and does not end."""
        return Values(follow(at("events"), None, after=after))

    @listing
    def audit(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        object_id: str | None = None,
        since: str | None = None,
        until: str | None = None,
        refused: bool | None = None,
        limit: int | None = None,
    ) -> Request[Items[models.AuditOut]]:
        query = {"actor": actor, "action": action, "object_id": object_id, "since": since, "until": until}
        return Request("GET", at("audit"), models.AuditOutPage, {**query, "refused": refused, "limit": limit})


class Tokens(Resource[F]):
    @listing
    def list(self) -> Request[Items[models.TokenOut]]:
        return Request("GET", at("tokens"), models.TokenOutPage)

    @operation
    def create(self, **fields: Unpack[bodies.TokenCreate]) -> Request[models.TokenCreated]:
        return Request("POST", at("tokens"), models.TokenCreated, json=given(fields))

    @operation
    def delete(self, token_id: str) -> Request[None]:
        return Request("DELETE", at("tokens", token_id))


class ProviderKeys(Resource[F]):
    @listing
    def list(self) -> Request[Items[models.KeyOut]]:
        return Request("GET", at("keys"), models.KeyOutPage)

    @operation
    def save(self, **fields: Unpack[bodies.KeyCreate]) -> Request[models.KeyOut]:
        return Request("POST", at("keys"), models.KeyOut, json=given(fields))

    @operation
    def delete(self, key_id: str) -> Request[None]:
        return Request("DELETE", at("keys", key_id))
