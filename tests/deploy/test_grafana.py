"""The dashboard asks for metrics that are there, and the compose profile finds the files it names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.served import Service

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy/grafana"
PANELS: list[dict[str, Any]] = json.loads((FOLDER / "dashboards/benchyard.json").read_text())["panels"]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())


async def test_every_query_names_metrics_that_are_exported(shared_service: Service) -> None:
    text = (await shared_service.client.get("/metrics")).text
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    exported = set(types) | {f"{name}_bucket" for name, kind in types.items() if kind == "histogram"}
    asked = {
        name for panel in PANELS for target in panel["targets"] for name in re.findall(r"benchyard_\w+", target["expr"])
    }
    assert len(asked) > 12
    assert asked <= exported


def test_panels_have_ids_places_and_the_provisioned_source() -> None:
    (source,) = yaml.safe_load((FOLDER / "provisioning/datasources/prometheus.yaml").read_text())["datasources"]
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in PANELS}) == len(PANELS)
    used = {target["datasource"]["uid"] for panel in PANELS for target in panel["targets"]}
    assert used == {source["uid"]}
    assert source["url"] == "http://prometheus:9090"


def test_the_profile_mounts_what_is_there_and_starts_nothing_by_itself() -> None:
    for name in ("prometheus", "grafana"):
        service = COMPOSE["services"][name]
        assert service["profiles"] == ["monitoring"]
        ours = [volume.split(":")[0] for volume in service["volumes"] if volume.startswith("./")]
        assert ours
        assert all((ROOT / path).exists() for path in ours)
    scrape = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]
    assert scrape[0]["static_configs"] == [{"targets": ["orchestrator:8000"]}]
    mounted = COMPOSE["services"]["prometheus"]["volumes"]
    assert any(scrape[0]["authorization"]["credentials_file"] in volume for volume in mounted)
