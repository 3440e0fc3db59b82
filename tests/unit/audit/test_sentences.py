"""Entries of the audit log in words, for routes of the API and of pages alike."""

from __future__ import annotations

import pytest

from orchestrator.audit.sentences import action_words


@pytest.mark.parametrize(
    ("action", "object_id", "text", "path"),
    [
        ("POST /api/container-runs", "r1", "started a run", "/runs/r1"),
        ("POST /api/container-runs/{run_id}/cancel", "r1", "cancelled the run", "/runs/r1"),
        ("POST /runs/new", "", "started a run", None),
        ("DELETE /api/alerts/webhooks/{webhook_id}", "3", "removed the notification", None),
        ("POST /settings/tokens/{token_id}/revoke", "3", "revoked the token", None),
        ("POST /schedules/{model_id}/pause", "1", "paused or resumed the schedule", "/schedules/1"),
        ("PATCH /api/models/{model_id}", "1", "changed the model", "/models/1"),
        ("POST /api/eval-sets", "s1", "added an eval set", "/eval-sets/s1"),
        ("schedule fired", "r1", "started the scheduled run", "/runs/r1"),
        ("POST /login", "", "signed in", None),
        ("PUT /api/limits/{whose}", "everyone", "set the limit", None),
        ("PUT /api/alerts/mutes/{model_id}", "2", "muted the alerts of model", "/models/2"),
        ("DELETE /api/alerts/mutes/{model_id}", "2", "unmuted the alerts of model", "/models/2"),
        ("something_new", "", "something new", None),
        ("POST (no such address)", "", "POST (no such address)", None),
        ("DELETE /api/datasets/{name}", "../x", "removed the dataset", None),
    ],
)
def test_an_entry_in_words(action: str, object_id: str, text: str, path: str | None) -> None:
    words = action_words(action, object_id)
    assert (words.text, words.path) == (text, path)
