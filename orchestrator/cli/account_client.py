"""The part of the REST API that is about who may do what: audit log, provider keys, limits."""

from __future__ import annotations

from orchestrator.cli.client import Client, Json


class AccountClient(Client):
    def audit(self, *, limit: int, **query: str | bool | None) -> list[Json]:
        wanted = {name: str(value) for name, value in query.items() if value is not None}
        return self._pages("/api/audit", limit=limit, query=wanted)

    def prune_audit(self, before: str) -> int:
        return int(self._call("POST", "/api/audit/prune", json={"before": before})["deleted"])
