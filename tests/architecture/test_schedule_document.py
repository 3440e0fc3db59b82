"""docs/schedules.md names every field, outcome, verdict, baseline, policy and alert."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.alerts.alerts import AlertKind
from orchestrator.schedules.drift.series import BaselineKind, DriftVerdict
from orchestrator.schedules.firing.cron import ALIASES
from orchestrator.schedules.firing.decisions import FireOutcome, Misfire, Overlap
from orchestrator.schedules.panel import Draw
from orchestrator.schedules.schemas import ScheduleSave

DOCUMENT = (Path(__file__).parents[2] / "docs" / "schedules.md").read_text()
WORDS = [*ScheduleSave.model_fields, *FireOutcome, *Misfire, *Overlap, *BaselineKind, *DriftVerdict, *Draw, *AlertKind]


@pytest.mark.parametrize("word", sorted(set(map(str, WORDS))))
def test_every_word_is_explained(word: str) -> None:
    assert f"`{word}`" in DOCUMENT or f": {word}`" in DOCUMENT


def test_short_names_are_listed() -> None:
    assert all(f"`{alias}`" in DOCUMENT for alias in ALIASES if alias not in ("@midnight", "@annually"))
