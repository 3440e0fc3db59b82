"""The generated schema of the contract is the one in docs/, and both sides ignore what they do not know."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from runner import contract

ROOT = Path(__file__).parents[2]


def test_the_schema_in_docs_is_the_one_in_the_code() -> None:
    stored = (ROOT / "docs" / "contract.schema.json").read_text()
    assert stored == contract.schema_text(), "run scripts/contract-schema"


@pytest.mark.parametrize(
    ("body", "known"),
    [
        (contract.BootConfig, {"orchestrator_url": "u", "token": "t", "instance_type": "i", "engine": "e"}),
        (contract.ClaimRequest, {"runner_id": "r", "contract_version": 1, "instance_type": "i", "engine": "e"}),
        (contract.EventBatch, {"attempt": 1, "events": [{"type": "heartbeat", "seq": 1, "mood": "fine"}]}),
        (contract.EventAck, {"ack_seq": 0, "desired": "run"}),
        (contract.Problem, {"benchmark": "b", "problem_id": "p", "record": {}}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_unknown_fields_are_ignored(body: type[contract.Message], known: dict[str, object]) -> None:
    assert body.model_validate({**known, "added_later": {"x": 1}}) == body.model_validate(known)


@pytest.mark.parametrize("name", ["contract", "contract_commands", "contract_evals", "eval_rules", "message", "parsing"])
def test_the_contract_is_a_leaf(name: str) -> None:
    tree = ast.parse((ROOT / "runner" / f"{name}.py").read_text())
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
    own = {"runner.contract_commands", "runner.contract_evals", "runner.message", "runner.parsing"}
    assert {each.split(".")[0] for each in imported - own} <= {"pydantic", *sys.stdlib_module_names}
