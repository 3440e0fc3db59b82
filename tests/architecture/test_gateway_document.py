"""The document names what the code has."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.gateway.edge.errors import Code
from orchestrator.gateway.edge.router import WIRES
from orchestrator.gateway.ledger.ledger import CallState
from orchestrator.gateway.protocols.protocol import Finish

DOCUMENT = Path(__file__).parents[2] / "docs" / "gateway.md"


@pytest.mark.parametrize("word", [*Code, *Finish, *CallState, *(wire.path for wire in WIRES)])
def test_every_word_is_documented(word: str) -> None:
    assert word in DOCUMENT.read_text()
