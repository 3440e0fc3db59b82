"""Generates the JSON Schema of the contract."""

import json
from typing import Any

from pydantic import TypeAdapter

from runner.contract.evals import TraceLine
from runner.contract.events import EventAck, EventBatch
from runner.contract.run_spec import CONTRACT_VERSION, BootConfig, ClaimAnswer, ClaimRequest, Problem


def schema() -> dict[str, Any]:
    """Returns the JSON Schema of every message body, for `docs/contract.schema.json`."""
    bodies: list[tuple[str, Any]] = [
        ("BootConfig", BootConfig),
        ("ClaimRequest", ClaimRequest),
        ("ClaimAnswer", ClaimAnswer),
        ("Problem", Problem),
        ("TraceLine", TraceLine),
        ("EventBatch", EventBatch),
        ("EventAck", EventAck),
    ]
    _, merged = TypeAdapter.json_schemas(
        [(name, "validation", TypeAdapter(body)) for name, body in bodies],
        title=f"Benchyard runner contract, version {CONTRACT_VERSION}",
    )
    return merged


def schema_text() -> str:
    return json.dumps(schema(), indent=2, sort_keys=True) + "\n"
