"""Providers of models, and their prices."""

from __future__ import annotations

from typing import Unpack

from orchestrator.client import bodies, models
from orchestrator.client.flavours import F, Resource, listing, operation
from orchestrator.client.requests import UPLOAD_S, Items, Request, at, given


class Providers(Resource[F]):
    @listing
    def list(self) -> Request[Items[models.ProviderOut]]:
        return Request("GET", at("providers"), models.ProviderOutPage)

    @listing
    def kinds(self) -> Request[Items[models.KindOut]]:
        """Iterates over the kinds of providers that are known."""
        return Request("GET", at("providers", "kinds"), models.KindOutPage)

    @operation
    def create(self, **fields: Unpack[bodies.ProviderCreate]) -> Request[models.ProviderOut]:
        return Request("POST", at("providers"), models.ProviderOut, json=given(fields))

    @operation
    def get(self, name: str) -> Request[models.ProviderOut]:
        return Request("GET", at("providers", name), models.ProviderOut)

    @operation
    def change(self, name: str, **fields: Unpack[bodies.ProviderPatch]) -> Request[models.ProviderOut]:
        return Request("PATCH", at("providers", name), models.ProviderOut, json=dict(fields))

    @operation
    def delete(self, name: str) -> Request[None]:
        return Request("DELETE", at("providers", name))

    @operation
    def test(self, name: str, **fields: Unpack[bodies.ProviderTest]) -> Request[models.ProviderTested]:
        """Asks the provider, and says what it understood."""
        path = at("providers", name, "test")
        return Request("POST", path, models.ProviderTested, json=given(fields), timeout_s=UPLOAD_S)


class Prices(Resource[F]):
    @listing
    def list(self, *, provider: str | None = None, limit: int | None = None) -> Request[Items[models.PriceOut]]:
        return Request("GET", at("prices"), models.PriceOutPage, {"provider": provider, "limit": limit})

    @operation
    def find(self, *, provider: str, model: str) -> Request[models.PriceOut]:
        return Request("GET", at("prices", "find"), models.PriceOut, {"provider": provider, "model": model})
