"""The base of every body that crosses the wire between runner and orchestrator."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Message(BaseModel):
    """Unknown fields are ignored, so that either side can be upgraded first; instances are values."""

    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=())
