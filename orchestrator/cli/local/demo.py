"""The demo: both demo models on the bundled sample, at once. The choice of the instance type is pure."""

from __future__ import annotations

from typing import Any

from orchestrator.cli.api.client import Client

BENCHMARK = "sample"
PREFERRED = "standard-2"
MODELS = {
    "demo-strong": {"display_name": "Demo (strong): recorded answers, mostly right", "protocol": "anthropic"},
    "demo-weak": {"display_name": "Demo (weak): recorded answers, often wrong", "protocol": "openai_chat"},
}


def ensure_models(client: Client) -> None:
    """The service adds them at its first start, but they may have been removed since."""
    slugs = {model["slug"] for model in client.pages("/api/models")}
    for slug, fields in MODELS.items():
        if slug not in slugs:
            free = {"input_price": 0.0, "output_price": 0.0}
            client.post("/api/models", {"slug": slug, "provider": "demo", "name": slug, **free, **fields})


def choose_type(fleet: dict[str, Any], count: int) -> str | None:
    """The preferred type if `count` containers of it fit at once; otherwise the largest smaller one; otherwise the smallest
    that fits at all. None means the service's default, which reports what is wrong.
    """
    types = {kind["name"]: kind for kind in fleet["instance_types"] if kind["fits"]}
    by_size = sorted(types.values(), key=lambda kind: (kind["vcpu"], kind["memory_bytes"]), reverse=True)
    wanted = types.get(PREFERRED)
    smaller = [kind for kind in by_size if wanted is None or kind["vcpu"] < wanted["vcpu"]]
    capacity = fleet["capacity"]
    for kind in ([wanted] if wanted else []) + smaller:
        if all(capacity[name] is None or count * kind[name] <= capacity[name] for name in ("vcpu", "memory_bytes")):
            return str(kind["name"])
    return str(by_size[-1]["name"]) if by_size else None


def bodies(instance_type: str | None) -> list[dict[str, Any]]:
    """One run of each demo model on the whole sample."""
    common: dict[str, Any] = {"benchmarks": [BENCHMARK], "subset_pct": 100.0}
    if instance_type is not None:
        common["instance_type"] = instance_type
    return [{**common, "model_id": slug} for slug in MODELS]
