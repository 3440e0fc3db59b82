"""The generated schema of the contract is the one in docs/, and both sides ignore what they do not know."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from runner.contract import events, message, run_spec, schema

ROOT = Path(__file__).parents[2]


def test_the_schema_in_docs_is_the_one_in_the_code() -> None:
    stored = (ROOT / "docs" / "contract.schema.json").read_text()
    assert stored == schema.schema_text(), "run scripts/contract-schema"


@pytest.mark.parametrize(
    ("body", "known"),
    [
        (run_spec.BootConfig, {"orchestrator_url": "u", "token": "t", "instance_type": "i", "engine": "e"}),
        (run_spec.ClaimRequest, {"runner_id": "r", "contract_version": 1, "instance_type": "i", "engine": "e"}),
        (events.EventBatch, {"attempt": 1, "events": [{"type": "heartbeat", "seq": 1, "mood": "fine"}]}),
        (events.EventAck, {"ack_seq": 0, "desired": "run"}),
        (run_spec.Problem, {"benchmark": "b", "problem_id": "p", "record": {}}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_unknown_fields_are_ignored(body: type[message.Message], known: dict[str, object]) -> None:
    assert body.model_validate({**known, "added_later": {"x": 1}}) == body.model_validate(known)


@pytest.mark.parametrize("path", sorted((ROOT / "runner" / "contract").glob("*.py")), ids=lambda path: path.stem)
def test_the_contract_is_a_leaf(path: Path) -> None:
    tree = ast.parse(path.read_text())
    imported = {
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    others = {module for module in imported if not module.startswith("runner.contract.")}
    own = {"re2"} if path.stem == "patterns" else set()
    assert {module.split(".")[0] for module in others} <= {"pydantic", *own, *sys.stdlib_module_names}
