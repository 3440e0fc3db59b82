"""The part of the REST API that is about who may do what: audit log, provider keys, limits."""

from __future__ import annotations

from orchestrator.cli.api.client import Client, Json


class AccountClient(Client):
    def audit(self, *, limit: int, **query: str | bool | None) -> list[Json]:
        wanted = {name: str(value) for name, value in query.items() if value is not None}
        return self._pages("/api/audit", limit=limit, query=wanted)

    def prune_audit(self, before: str) -> int:
        return int(self._call("POST", "/api/audit/prune", json={"before": before})["deleted"])

    def keys(self) -> list[Json]:
        return list(self._call("GET", "/api/keys")["items"])

    def put_key(self, body: Json) -> Json:
        return self._call("POST", "/api/keys", json=body)

    def remove_key(self, key_id: int) -> None:
        self._call("DELETE", f"/api/keys/{key_id}")

    def rotate_keys(self) -> Json:
        return self._call("POST", "/api/keys/rotate")

    def limits(self) -> Json:
        return self._call("GET", "/api/limits")

    def set_limit(self, whose: str, body: Json) -> Json:
        return self._call("PUT", f"/api/limits/{whose}", json=body)

    def remove_limit(self, whose: str) -> None:
        self._call("DELETE", f"/api/limits/{whose}")
