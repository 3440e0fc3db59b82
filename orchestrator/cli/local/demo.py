"""The demo: both demo models on the bundled sample, at once. Choosing the instance type is pure."""

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
    """The service adds them at its first start; somebody may have removed them since."""
    known = {each["slug"] for each in client.models()}
    for slug, more in MODELS.items():
        if slug not in known:
            client.add_model(
                {"slug": slug, "provider": "demo", "name": slug, "input_price": 0.0, "output_price": 0.0, **more}
            )


def choose_type(fleet: dict[str, Any], count: int) -> str | None:
    """The preferred type if `count` containers of it fit at once; else the largest smaller one; else the smallest that fits
    at all. None: the service's default, and let it say what is wrong."""
    types = {each["name"]: each for each in fleet["instance_types"] if each["fits"]}
    by_size = sorted(types.values(), key=lambda each: (each["vcpu"], each["memory_bytes"]), reverse=True)
    wanted = types.get(PREFERRED)
    smaller = [each for each in by_size if wanted is None or each["vcpu"] < wanted["vcpu"]]
    capacity = fleet["capacity"]
    for each in ([wanted] if wanted else []) + smaller:
        enough_cpu = capacity["vcpu"] is None or count * each["vcpu"] <= capacity["vcpu"]
        enough_memory = capacity["memory_bytes"] is None or count * each["memory_bytes"] <= capacity["memory_bytes"]
        if enough_cpu and enough_memory:
            return str(each["name"])
    return str(by_size[-1]["name"]) if by_size else None


def bodies(instance_type: str | None) -> list[dict[str, Any]]:
    """One run of each demo model on the whole sample."""
    common: dict[str, Any] = {"benchmarks": [BENCHMARK], "subset_pct": 100.0}
    if instance_type is not None:
        common["instance_type"] = instance_type
    return [{**common, "model_id": slug} for slug in MODELS]
